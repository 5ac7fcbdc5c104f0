"""The planner's Dagster definitions, merged into a project with its own definitions."""

import dagster as dg
import pytest

from fairlead_planner import PlannerComponent, definitions
from orchestration.jobs import STEPS


@dg.asset
def invoices() -> None:
    """Do nothing. This asset belongs to the project, not to the planner."""


def test_planning_job_has_no_assets_of_the_project() -> None:
    """The job `planning` has only the planner's assets and checks."""
    merged = dg.Definitions.merge(dg.Definitions(assets=[invoices]), definitions())
    job = merged.resolve_job_def("planning")
    assert {key.to_user_string() for key in job.asset_layer.selected_asset_keys} == set(STEPS)
    assert len(job.asset_layer.asset_graph.asset_check_keys) == 3


def test_planning_always_runs_in_one_process() -> None:
    """The job ignores a project's multiprocess executor, whose processes would each start Spark."""
    project = dg.Definitions(assets=[invoices], executor=dg.multiprocess_executor)
    merged = dg.Definitions.merge(project, definitions())
    assert merged.resolve_job_def("planning").executor_def is dg.in_process_executor


def test_project_can_set_the_schedule() -> None:
    """`definitions` accepts a cron schedule, and arguments of Dagster's `Definitions`."""
    (schedule,) = definitions(planning_schedule="*/5 * * * *").schedules or []
    assert isinstance(schedule, dg.ScheduleDefinition)
    assert schedule.cron_schedule == "*/5 * * * *"
    assert list(definitions(schedules=[]).schedules or []) == []


def test_component_refuses_unknown_keys() -> None:
    """The component accepts `planning_schedule` in a `defs.yaml`; a misspelt key is an error."""
    assert PlannerComponent.resolve_from_yaml("planning_schedule: '0 * * * *'") == (
        PlannerComponent(planning_schedule="0 * * * *")
    )
    with pytest.raises(Exception, match="planing_schedule"):
        PlannerComponent.resolve_from_yaml("planing_schedule: '0 * * * *'")
