"""The layers of the architecture: the imports that packages may have."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.waiting import PATIENCE_S

ROOT = Path(__file__).parents[1]


@pytest.mark.long
def test_dependencies_point_one_way() -> None:
    """Every contract under [tool.importlinter] in pyproject.toml holds."""
    # Run in a separate process, because it disables all loggers of its process.
    linter = Path(sys.executable).with_name("lint-imports")
    subprocess.run([linter, "--no-cache"], cwd=ROOT, check=True, timeout=PATIENCE_S)


def test_architecture_page_draws_the_enforced_layers() -> None:
    """The drawing shows the layers of the import contract."""
    linter = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    (floors,) = (
        contract["layers"]
        for contract in linter["contracts"]
        if contract.get("containers") == ["fairlead"]
    )
    drawing = "\n".join(["```text", *floors, "```"])
    assert drawing in (ROOT / "docs" / "architecture.md").read_text()
    assert len(floors) <= 7
