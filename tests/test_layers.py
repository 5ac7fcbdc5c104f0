"""The layers of the architecture: which package may import which."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.waiting import PATIENCE_S

ROOT = Path(__file__).parents[1]


@pytest.mark.long
def test_dependencies_point_one_way() -> None:
    """The imports keep every contract under [tool.importlinter] in pyproject.toml."""
    # In a separate process, because import-linter disables all loggers of its process.
    linter = Path(sys.executable).with_name("lint-imports")
    subprocess.run([linter, "--no-cache"], cwd=ROOT, check=True, timeout=PATIENCE_S)


def test_architecture_page_draws_the_enforced_layers() -> None:
    """The drawing in docs/architecture.md has the layers of the contract in pyproject.toml."""
    linter = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    (floors,) = (
        contract["layers"]
        for contract in linter["contracts"]
        if contract.get("containers") == ["fairlead"]
    )
    drawing = "\n".join(["```text", *floors, "```"])
    assert drawing in (ROOT / "docs" / "architecture.md").read_text()
    assert len(floors) <= 7
