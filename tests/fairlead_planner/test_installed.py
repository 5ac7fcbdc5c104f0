"""The planner in a Dagster project that has the installed wheel but not the checkout."""

import json
from pathlib import Path

import pytest

from fairlead.store import migrate
from orchestration.jobs import STEPS
from tests.packaging import ROOT, beside_the_tests_own, build
from tests.programs import ended

pytestmark = pytest.mark.long

MERGED = """
import dagster as dg
import fairlead_planner

@dg.asset
def invoices() -> None: ...

defs = dg.Definitions.merge(dg.Definitions(assets=[invoices]), fairlead_planner.definitions())
"""
FOUND_IN_A_FOLDER = """
import pathlib
import dagster as dg

@dg.definitions
def defs():
    return dg.load_from_defs_folder(path_within_project=pathlib.Path(__file__).parent)
"""
COMPONENT = """
type: fairlead_planner.PlannerComponent
attributes:
  planning_schedule: "*/5 * * * *"
"""
PROJECT = """
[tool.dg]
directory_type = "project"
[tool.dg.project]
root_module = "billing"
"""
VALIDATE = (
    *("-m", "dagster", "definitions", "validate"),
    *("-m", "fairlead_planner.orchestration.definitions"),
)
#: Program that prints what a project's definitions contain, and the files of imported modules.
SHOW = """
import json, sys
import dagster as dg
from billing.definitions import defs
found = defs() if not isinstance(defs, dg.Definitions) else defs
repository = found.get_repository_def() if hasattr(found, "get_repository_def") else None
graph = repository.asset_graph
files = {
    name: module.__file__ for name, module in sys.modules.items()
    if name.split(".")[0] in {"assets", "orchestration", "migrations", "fairlead",
                              "fairlead_planner", "assignors"}
    and getattr(module, "__file__", None)
}
print(json.dumps({
    "assets": sorted(key.to_user_string() for key in graph.get_all_asset_keys()),
    "schedules": {one.name: one.cron_schedule for one in repository.schedule_defs},
    "sensors": sorted(one.name for one in repository.sensor_defs),
    "jobs": sorted(one.name for one in repository.get_all_jobs() if not one.name.startswith("_")),
    "files": files,
}))
"""


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the interpreter of an environment that has the wheel."""
    folder = tmp_path_factory.mktemp("planner")
    return beside_the_tests_own(folder, build("wheel", folder / "dist"))


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Create a Dagster project with the package `billing`, without definitions; return its path."""
    (tmp_path / "pyproject.toml").write_text(PROJECT)
    (tmp_path / "billing").mkdir()
    (tmp_path / "billing/__init__.py").touch()
    return tmp_path


def check_whole(python: Path, project: Path, cron: str, *own: str) -> None:
    """Check that a project's definitions contain the whole planner, imported from the wheel."""
    facts = json.loads(ended(python, "-c", SHOW, cwd=project).stdout.splitlines()[-1])
    assert facts["assets"] == sorted([*STEPS, *own])
    assert facts["schedules"] == {"planning_schedule": cron}
    sensors = ["approved_plans", "group_discovery", "group_samples", "plan_life"]
    sensors += ["planning_sensor"]
    assert facts["sensors"] == sensors
    assert {"adoption", "approve", "planning"} <= set(facts["jobs"])
    assert {"assets", "orchestration", "migrations"}.isdisjoint(
        name.partition(".")[0] for name in facts["files"]
    )
    assert [file for file in facts["files"].values() if Path(file).is_relative_to(ROOT)] == []


def test_project_merges_the_planner_in_one_line(python: Path, project: Path) -> None:
    """`Definitions.merge` gives a project its own assets and the whole planner."""
    (project / "billing/definitions.py").write_text(MERGED)
    check_whole(python, project, "*/15 * * * *", "invoices")


def test_project_has_the_planner_as_a_component(python: Path, project: Path) -> None:
    """A folder with a `defs.yaml` adds the whole planner to a Dagster project."""
    (project / "billing/definitions.py").write_text(FOUND_IN_A_FOLDER)
    (project / "billing/defs/planner").mkdir(parents=True)
    (project / "billing/defs/__init__.py").touch()
    (project / "billing/defs/planner/defs.yaml").write_text(COMPONENT)
    check_whole(python, project, "*/5 * * * *")


def test_planner_is_a_separate_code_location(python: Path, tmp_path: Path) -> None:
    """`dagster definitions validate` accepts the planner's module as a code location."""
    home = tmp_path / "home"
    home.mkdir()
    environment = {"DAGSTER_HOME": str(home), "DAGSTER_DISABLE_TELEMETRY": "yes"}
    ended(python, *VALIDATE, cwd=tmp_path, env=environment)


@pytest.mark.test_long(
    guarded_by="tests/orchestration/test_installed.py"
    "::test_group_is_planned_by_the_installed_planner"
)
def test_jobs_run_from_a_shell(python: Path, tmp_path: Path) -> None:
    """The help of `python -m fairlead_planner.orchestration` shows the command that users type."""
    done = ended(python, "-m", "fairlead_planner.orchestration", "--help", cwd=tmp_path)
    assert "usage: python -m fairlead_planner.orchestration" in done.stdout


@pytest.mark.postgres
def test_migrations_are_in_the_wheel(python: Path, database: str, tmp_path: Path) -> None:
    """The installed `fairlead db upgrade` creates the schema, and `db check` accepts it."""
    program = python.parent / "fairlead"
    for words, output in (
        (["db", "upgrade"], f"empty -> {migrate.head()}"),
        (["db", "check"], "the database has the schema of this version"),
    ):
        done = ended(program, *words, cwd=tmp_path, env={"FAIRLEAD_POSTGRES__URL": database})
        assert done.stdout.strip() == output
