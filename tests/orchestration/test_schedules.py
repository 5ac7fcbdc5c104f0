"""The planning schedule: its run requests, and the settings of intervals."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.definitions.partitions.context import partition_loading_context
from dagster._core.definitions.schedule_definition import ScheduleExecutionData

from assets.partitions import COHORT
from orchestration.definitions import build_defs
from orchestration.schedules import build_planning_schedule
from orchestration.tick_intervals import at_loading, ticks_of


@pytest.fixture
def instance(tmp_path: Path) -> Iterator[dg.DagsterInstance]:
    """Return a Dagster instance that stores its state in files, because schedules require this."""
    with dg.DagsterInstance.local_temp(str(tmp_path)) as instance:
        yield instance


def tick(
    instance: dg.DagsterInstance, *cohorts: str, at: datetime | None = None
) -> ScheduleExecutionData:
    """Add these cohorts, and evaluate the schedule as Dagster's daemon does."""
    instance.add_dynamic_partitions(COHORT, list(cohorts))
    definitions = build_defs()
    context = dg.build_schedule_context(
        instance,
        at or datetime.now(UTC),
        repository_def=definitions.get_repository_def(),
        resources=definitions.resources,
    )
    with context, partition_loading_context(dynamic_partitions_store=instance):
        return definitions.resolve_schedule_def("planning_schedule").evaluate_tick(context)


def test_schedule_requests_one_run_over_all_cohorts(instance: dg.DagsterInstance) -> None:
    """One run is requested: for the range from the first to the last cohort added to Dagster."""
    (request,) = tick(instance, "c", "a", "b").run_requests or ()
    assert request.partition_key is None
    assert request.tags["dagster/asset_partition_range_start"] == "c"
    assert request.tags["dagster/asset_partition_range_end"] == "b"


def test_intervals_are_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Schedule and sampling interval are those in the settings; an invalid schedule is ignored."""
    monkeypatch.setenv("FAIRLEAD_PLANNING__SCHEDULE", "0 */6 * * *")
    monkeypatch.setenv("FAIRLEAD_SAMPLING__EVERY", "PT15S")
    assert build_planning_schedule().cron_schedule == "0 */6 * * *"
    assert ticks_of(at_loading()[1]) == 5
    monkeypatch.setenv("FAIRLEAD_PLANNING__SCHEDULE", "now and then")
    assert build_planning_schedule().cron_schedule == "*/15 * * * *"


def test_schedule_skips_without_cohorts(instance: dg.DagsterInstance) -> None:
    """If there are no cohorts, the skip message names the sensor to turn on, `group_discovery`."""
    found = tick(instance)
    assert not found.run_requests
    assert "group_discovery" in str(found.skip_message)


def test_schedule_waits_for_the_previous_run(instance: dg.DagsterInstance) -> None:
    """While a planning run is in progress, the schedule requests none."""
    instance.add_run(dg.DagsterRun(job_name="planning", status=dg.DagsterRunStatus.STARTED))
    found = tick(instance, "a")
    assert not found.run_requests
    assert "under way" in str(found.skip_message)
