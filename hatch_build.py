"""Puts the planner into the wheel, as subpackages of a package of its own.

In a checkout `assets`, `orchestration` and `migrations` are folders at the top, where Dagster's and
Alembic's conventions have them. In somebody's site-packages such names would meet others of the
same kind: the wheel has the same sources as `fairlead_planner.assets` and so on, with the imports
of each other written accordingly. An editable installation has the checkout itself.
"""

import re
import shutil
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PACKAGE = "fairlead_planner"
FOLDERS = ("assets", "orchestration", "migrations")
#: Imports of the folders; and where docstrings and help say how a module is run or named.
NAMED = re.compile(
    r"^(?P<before>\s*(?:from|import) |.*(?:python -m |module: ))(?P<name>assets|orchestration)\b",
    re.MULTILINE,
)


def as_installed(source: str) -> str:
    """Return a module's source with the folders under the names that they have in the wheel."""
    return NAMED.sub(rf"\g<before>{PACKAGE}.\g<name>", source)


class PlannerHook(BuildHookInterface):  # type: ignore[type-arg]
    """Adds what is built of the folders to a wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write the folders under their names in the wheel, and add them to it."""
        if version == "editable":
            return
        self._built = Path(tempfile.mkdtemp(prefix="fairlead-planner-"))
        for name in (*FOLDERS, PACKAGE):
            to = self._built if name == PACKAGE else self._built / name
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(Path(self.root, name), to, ignore=ignored, dirs_exist_ok=True)
        for module in self._built.rglob("*.py"):
            module.write_text(as_installed(module.read_text()))
        text = Path(self.root, "dagster.yaml").read_text()
        (self._built / "dagster.yaml").write_text(as_installed(text))
        build_data["force_include"][str(self._built)] = PACKAGE

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove what was written."""
        del build_data, artifact_path
        if version != "editable":
            shutil.rmtree(self._built)
