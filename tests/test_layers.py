"""The architecture, enforced: which package may import which."""

import tomllib
from pathlib import Path

import pytest
from importlinter.cli import lint_imports

ROOT = Path(__file__).parents[1]


@pytest.mark.long
def test_dependencies_point_one_way() -> None:
    """Every contract under [tool.importlinter] in pyproject.toml holds."""
    assert lint_imports(config_filename=str(ROOT / "pyproject.toml"), no_cache=True) == 0


def test_architecture_page_draws_the_floors_that_are_enforced() -> None:
    """The drawing is the contract's own."""
    linter = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    (floors,) = (
        contract["layers"]
        for contract in linter["contracts"]
        if contract.get("containers") == ["fairlead"]
    )
    drawing = "\n".join(["```text", *floors, "```"])
    assert drawing in (ROOT / "docs" / "architecture.md").read_text()
    assert len(floors) <= 7
