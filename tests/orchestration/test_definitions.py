"""Definitions of the code location, as Dagster's UI and daemon see them."""

import os
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, get_args

import dagster as dg
import pytest

from assets.about import CHANGES, Changed
from orchestration.definitions import build_defs
from orchestration.operations import GroupConfig
from tests.waiting import PATIENCE_S

ROOT = Path(__file__).parents[2]

#: The jobs that a person starts, and the required configuration of each.
OPERATIONS = {
    "approve": {"group", "version", "reason"},
    "reject": {"group", "version", "reason"},
    "rollback": {"group", "version", "reason"},
    "withdraw": {"group", "reason"},
    "prune": set[str](),
    "keys": {"topic"},
}

#: Run first in a new process: any connection, process or written file is an error from then on.
NO_IO = """
import os, sys
def refuse(event, arguments):
    if event in {"socket.connect", "socket.bind", "subprocess.Popen", "os.exec", "os.fork"}:
        raise RuntimeError(f"{event} at import: {arguments}")
    if event == "open" and isinstance(arguments[1], str) and set(arguments[1]) & set("wax+"):
        if arguments[0] != os.devnull:
            raise RuntimeError(f"written at import: {arguments}")
sys.addaudithook(refuse)
import orchestration.definitions
print(*{module.partition(".")[0] for module in sys.modules})
"""


@cache
def repository() -> dg.RepositoryDefinition:
    return build_defs().get_repository_def()


def jobs() -> Iterator[dg.JobDefinition]:
    """Yield the jobs in the UI."""
    return (job for job in repository().get_all_jobs() if not job.name.startswith("__"))


def test_what_a_person_does_is_a_job() -> None:
    """Each job has one step, and its configuration is required."""
    found = {}
    for job in (job for job in jobs() if job.name in OPERATIONS):
        (node,) = job.nodes
        assert isinstance(node.definition, dg.OpDefinition)
        schema = node.definition.config_schema
        assert schema is not None
        fields = getattr(schema.config_type, "fields", {})
        found[job.name] = {name for name, field in fields.items() if field.is_required}
    assert found == OPERATIONS


@pytest.mark.parametrize("reason", ["", " "])
def test_a_person_says_why(reason: str) -> None:
    """The reason is required before anything is sent, because the history has it."""
    assert GroupConfig(group="orders", reason="CHG-1234").reason == "CHG-1234"
    with pytest.raises(ValueError, match="reason"):
        GroupConfig(group="orders", reason=reason)


def test_schedules_and_sensors() -> None:
    """Automatic jobs and their intervals; people turn the schedule on."""
    (schedule,) = repository().schedule_defs
    assert (schedule.name, schedule.cron_schedule, schedule.job_name) == (
        "planning_schedule",
        "*/15 * * * *",
        "planning",
    )
    found = {
        sensor.name: (
            [target.job_name for target in sensor.targets if target.job_name],
            sensor.minimum_interval_seconds,
            sensor.default_status.value,
        )
        for sensor in repository().sensor_defs
    }
    assert found == {
        "group_discovery": ([], 60, "RUNNING"),
        "approved_plans": (["adoption"], 15, "RUNNING"),
        "plan_life": ([], 30, "RUNNING"),
        "group_samples": (["sample"], 20, "RUNNING"),
        "planning_sensor": (["planning"], 20, "STOPPED"),
    }


def test_everything_says_what_it_is() -> None:
    """The UI shows the purpose, the owner and the effects of each definition."""
    incomplete = {name: sorted(missing) for name, missing in lacking() if missing}
    assert incomplete == {}


def lacking() -> Iterator[tuple[str, set[str]]]:
    """Yield every definition with its missing descriptions."""
    graph = repository().asset_graph
    described = {"description", "metadata"}
    owned = described | {"owners", "tags"}
    for key in graph.get_all_asset_keys():
        yield key.to_user_string(), unsaid(graph.get(key), owned | {"group_name", "kinds"})
    for check in graph.asset_check_keys:
        yield check.name, unsaid(graph.get_check_spec(check), described)
    automation: list[Any] = [*repository().schedule_defs, *repository().sensor_defs]
    for definition in [*jobs(), *automation]:
        yield definition.name, unsaid(definition, owned)
    for job in (job for job in jobs() if job.name in OPERATIONS):
        (node,) = job.nodes
        yield node.name, unsaid(node.definition, {"description"})
    for name, resource in repository().get_top_level_resources().items():
        yield name, unsaid(resource, {"description"})


def unsaid(definition: Any, wanted: set[str]) -> set[str]:
    """Return a definition's missing attributes, tags for its effects, or source."""
    missing = {name for name in wanted if not getattr(definition, name)}
    if "tags" in wanted and definition.tags.get(CHANGES) not in get_args(Changed):
        missing.add(CHANGES)
    if "metadata" in wanted:
        source = definition.metadata.get("dagster/code_references")
        places = source.code_references if source else []
        missing |= {
            f"{place.file_path}:{place.line_number}"
            for place in places
            if ROOT not in Path(place.file_path).parents
        } or (set() if places else {"code references"})
    return missing


@cache
def imported() -> set[str]:
    """Import the definitions in a new process; return the packages that this has imported."""
    environment = {name: value for name, value in os.environ.items() if "FAIRLEAD" not in name}
    result = subprocess.run(
        [sys.executable, "-B", "-c", NO_IO],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert result.returncode == 0, result.stderr
    return set(result.stdout.split())


@pytest.mark.long
def test_loading_does_no_io() -> None:
    """Importing the definitions makes no connection, starts no process and writes no file."""
    assert "orchestration" in imported()


@pytest.mark.long
def test_a_run_imports_nothing_that_it_may_not_need() -> None:
    """Spark, plots, solvers and clients are imported on use, because their import is slow."""
    late = {"matplotlib", "ortools", "pandas", "aiokafka", "kafka", "pyspark"}
    assert not late & imported()
