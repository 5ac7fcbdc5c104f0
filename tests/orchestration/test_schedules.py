"""Run requests of the planning schedule."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import dagster as dg
import psycopg
import pytest
from dagster._core.definitions.partitions.context import partition_loading_context
from dagster._core.definitions.schedule_definition import ScheduleExecutionData

from assets.partitions import COHORT
from orchestration.definitions import build_defs
from orchestration.schedules import build_planning_schedule
from orchestration.tick_intervals import tick_every_s


@pytest.fixture
def instance(tmp_path: Path) -> Iterator[dg.DagsterInstance]:
    """Return an instance that keeps its state in files, as schedules require."""
    with dg.DagsterInstance.local_temp(str(tmp_path)) as instance:
        yield instance


def tick(
    instance: dg.DagsterInstance, *cohorts: str, at: datetime | None = None
) -> ScheduleExecutionData:
    """Evaluate the schedule as the daemon does, for these known cohorts."""
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


def test_schedule_asks_for_one_run_over_all_cohorts(instance: dg.DagsterInstance) -> None:
    """All cohorts are one range, in Dagster's order."""
    (request,) = tick(instance, "c", "a", "b").run_requests or ()
    assert request.partition_key is None
    assert request.tags["dagster/asset_partition_range_start"] == "c"
    assert request.tags["dagster/asset_partition_range_end"] == "b"


def test_schedule_asks_for_the_partition_where_there_is_one_alone(
    instance: dg.DagsterInstance,
) -> None:
    """A single cohort is requested without a range."""
    (request,) = tick(instance, "only").run_requests or ()
    assert request.partition_key == "only"


def test_rhythm_is_a_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Settings change the intervals of schedule and sampling; an invalid one means the default."""
    monkeypatch.setenv("FAIRLEAD_PLANNING__SCHEDULE", "0 */6 * * *")
    monkeypatch.setenv("FAIRLEAD_SAMPLING__EVERY", "PT15S")
    assert build_planning_schedule().cron_schedule == "0 */6 * * *"
    assert tick_every_s() == 5
    monkeypatch.setenv("FAIRLEAD_PLANNING__SCHEDULE", "now and then")
    assert build_planning_schedule().cron_schedule == "*/15 * * * *"


def test_schedule_skips_without_cohorts(instance: dg.DagsterInstance) -> None:
    """The skip reason has the name of the sensor to turn on."""
    found = tick(instance)
    assert not found.run_requests
    assert "group_discovery" in str(found.skip_message)


def test_schedule_waits_for_the_run_before(instance: dg.DagsterInstance) -> None:
    """The schedule skips while a run is in progress, so that no group is planned twice."""
    instance.add_run(dg.DagsterRun(job_name="planning", status=dg.DagsterRunStatus.STARTED))
    found = tick(instance, "a")
    assert not found.run_requests
    assert "under way" in str(found.skip_message)


@pytest.mark.postgres
def test_schedule_asks_for_what_is_due_by_its_cadence(
    instance: dg.DagsterInstance, migrated: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A group with a decision within its cadence is left out until the cadence has passed."""
    config = tmp_path / "fairlead.toml"
    config.write_text(
        f'postgres.url = "{migrated}"\n[[policies]]\ngroups = "daily"\ncadence = "P1D"\n'
    )
    monkeypatch.setenv("FAIRLEAD_CONFIG", str(config))
    now = datetime.now(UTC)
    with psycopg.connect(migrated) as connection:
        connection.execute("INSERT INTO fairlead_raw.consumer_group VALUES ('daily')")
        connection.execute("SELECT fairlead_raw.ensure_day(%s)", [now.date()])
        connection.execute(
            "INSERT INTO fairlead_raw.decision VALUES ('daily', 's1', %s, %s, 'no change', 'fine')",
            [now, now],
        )
    requests = tick(instance, "daily", "other", at=now).run_requests or ()
    assert [request.partition_key for request in requests] == ["other"]
    (request,) = tick(instance, at=now + timedelta(days=1)).run_requests or ()
    assert request.tags["dagster/asset_partition_range_start"] == "daily"
