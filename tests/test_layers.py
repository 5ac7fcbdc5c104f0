"""The architecture, enforced: which package may import which."""

from pathlib import Path

from importlinter.cli import lint_imports

ROOT = Path(__file__).parents[1]


def test_dependencies_point_one_way() -> None:
    """Every contract under [tool.importlinter] in pyproject.toml holds."""
    assert lint_imports(config_filename=str(ROOT / "pyproject.toml"), no_cache=True) == 0
