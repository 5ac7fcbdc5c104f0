"""Puts the planner into the wheel, as subpackages of `fairlead_planner`.

In a checkout `assets`, `orchestration` and `migrations` are top-level folders, by the conventions
of Dagster and Alembic. In site-packages, such general names could collide with other packages.
Therefore the wheel has the same sources as `fairlead_planner.assets` and so on, and their imports
are changed accordingly. An editable installation uses the checkout itself.
"""

import re
import shutil
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PACKAGE = "fairlead_planner"
FOLDERS = ("assets", "orchestration", "migrations")
#: Matches imports of the folders, and names of modules in commands and in dagster.yaml.
NAMED = re.compile(
    r"^(?P<before>\s*(?:from|import) |.*(?:python -m |module: ))(?P<name>assets|orchestration)\b",
    re.MULTILINE,
)


def as_installed(source: str) -> str:
    """Replace the folders' names in source code by their names in the wheel."""
    return NAMED.sub(rf"\g<before>{PACKAGE}.\g<name>", source)


class PlannerHook(BuildHookInterface):  # type: ignore[type-arg]
    """Adds the folders to a wheel, under other names."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Copy the folders, change their names, and add the copies to the wheel."""
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
        """Remove the copies."""
        del build_data, artifact_path
        if version != "editable":
            shutil.rmtree(self._built)
