"""What the code location offers, as Dagster's UI and daemon see it."""

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
from assets.partitions import COHORT
from orchestration.definitions import build_defs
from orchestration.operations import GroupConfig
from tests.waiting import PATIENCE_S

ROOT = Path(__file__).parents[2]

#: The jobs that a person starts, and what each has to be told.
OPERATIONS = {
    "approve": {"group", "version", "reason"},
    "reject": {"group", "version", "reason"},
    "rollback": {"group", "version", "reason"},
    "retire": {"group", "reason"},
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
    """Yield the jobs that people see."""
    return (job for job in repository().get_all_jobs() if not job.name.startswith("__"))


def test_asset_graph() -> None:
    """Six steps in three groups, the lag beside the analysis, each with the systems it touches."""
    graph = repository().asset_graph
    found = {
        key.to_user_string(): (
            sorted(parent.to_user_string() for parent in graph.get(key).parent_keys),
            graph.get(key).group_name,
            sorted(graph.get(key).kinds),
        )
        for key in graph.get_all_asset_keys()
    }
    assert found == {
        "group_offsets": ([], "observe", ["kafka", "parquet"]),
        "partition_lag": (["group_offsets"], "observe", ["postgres", "spark"]),
        "candidate_plans": (["group_offsets"], "decide", ["parquet", "spark"]),
        "assignment_plan": (["candidate_plans"], "decide", ["postgres"]),
        "published_plan": (["assignment_plan"], "act", ["kafka"]),
        "plan_adoption": (["published_plan"], "act", ["kafka", "postgres"]),
    }


def test_every_asset_is_partitioned_by_cohort_and_runs_over_many_at_once() -> None:
    """Dynamic partitions `cohort`, a single run a backfill, retries."""
    graph = repository().asset_graph
    for key in graph.get_all_asset_keys():
        node = graph.get(key)
        assert isinstance(node.partitions_def, dg.DynamicPartitionsDefinition)
        assert node.partitions_def.name == COHORT
        assert node.backfill_policy == dg.BackfillPolicy.single_run()
        retries = node.assets_def.op.retry_policy
        assert retries is not None
        assert retries.max_retries > 0


def test_asset_checks() -> None:
    """What each check is on, and whether it stops what comes after."""
    graph = repository().asset_graph
    found = {
        key.name: (key.asset_key.to_user_string(), graph.get_check_spec(key).blocking)
        for key in graph.asset_check_keys
    }
    assert found == {
        "every_group_was_read": ("group_offsets", False),
        "every_partition_has_one_lag": ("partition_lag", True),
        "every_partition_has_one_owner": ("assignment_plan", True),
        "stored_metrics_agree": ("assignment_plan", False),
        "the_topic_agrees": ("published_plan", True),
    }


def test_jobs() -> None:
    """Each job's steps: planning is everything, publication and adoption are its ends."""
    found = {
        job.name: {key.to_user_string() for key in job.asset_layer.selected_asset_keys}
        for job in jobs()
        if job.name not in OPERATIONS
    }
    every = {key.to_user_string() for key in repository().asset_graph.get_all_asset_keys()}
    assert found == {
        "planning": every,
        "publication": {"published_plan", "plan_adoption"},
        "adoption": {"plan_adoption"},
        "look": set(),
    }


def test_what_a_person_does_is_a_job() -> None:
    """One step each; what it has to be told cannot be left out."""
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
    """Before anything is sent: it stands in the history for good."""
    assert GroupConfig(group="orders", reason="CHG-1234").reason == "CHG-1234"
    with pytest.raises(ValueError, match="reason"):
        GroupConfig(group="orders", reason=reason)


def test_schedules_and_sensors() -> None:
    """What starts by itself and how often, for which job; people turn the schedule on."""
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
        "group_samples": (["look"], 20, "RUNNING"),
        "planning_sensor": (["planning"], 20, "STOPPED"),
    }


def test_everything_says_what_it_is() -> None:
    """Whoever opens the UI reads what each thing is for, whose it is, and what it changes."""
    incomplete = {name: sorted(missing) for name, missing in lacking() if missing}
    assert incomplete == {}


def lacking() -> Iterator[tuple[str, set[str]]]:
    """Yield every definition with what it does not say of itself but could."""
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
    """Return what a definition lacks: attributes, the tag for what it changes, its source."""
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


def test_overrides_replace_arguments() -> None:
    """A variant for a test replaces what it names, and keeps the rest."""
    variant = build_defs(schedules=[], jobs=[])
    assert list(variant.schedules or []) == []
    assert [sensor.name for sensor in variant.sensors or []] == [
        "group_discovery",
        "approved_plans",
        "plan_life",
        "group_samples",
        "planning_sensor",
    ]
    assert len(list(build_defs().schedules or [])) == 1


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
    """Nothing is connected to, started or written while the definitions are imported."""
    assert "orchestration" in imported()


@pytest.mark.parametrize("folder", ["assets", "orchestration"])
def test_dagster_can_read_annotations(folder: str) -> None:
    """`from __future__ import annotations` would turn what Dagster reads into text."""
    modules = list((ROOT / folder).glob("**/*.py"))
    assert modules
    statement = "\nfrom __future__ import annotations"
    assert [path.name for path in modules if statement in f"\n{path.read_text()}"] == []


@pytest.mark.long
def test_dagster_validates_the_workspace(tmp_path: Path) -> None:
    """Dagster's own check of workspace.yaml and the definitions passes, without a warning."""
    result = subprocess.run(
        [
            *(sys.executable, "-m", "dagster", "definitions", "validate"),
            *("-w", str(ROOT / "workspace.yaml")),
        ],
        cwd=ROOT,
        env={**os.environ, "DAGSTER_HOME": str(tmp_path), "DAGSTER_DISABLE_TELEMETRY": "yes"},
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert result.returncode == 0, result.stderr
    said = result.stderr + result.stdout
    assert "fairlead" in said
    assert "BetaWarning" not in said


@pytest.mark.long
def test_a_run_imports_nothing_that_it_may_not_need() -> None:
    """Spark, drawing, solvers and clients are imported where they are used: each takes long."""
    late = {"matplotlib", "ortools", "pandas", "aiokafka", "kafka", "pyspark"}
    assert not late & imported()
