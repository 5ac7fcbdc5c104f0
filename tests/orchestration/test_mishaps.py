"""Plans and messages are correct in spite of faults around the planner.

The faults are wrong clocks, two simultaneous runs, a missing database, damaged files and a full
disk. `tests/fairlead/workflows/test_crashes.py` tests kills of the planner.
"""

import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path
from typing import Any

import dagster as dg
import psycopg
import pytest
from confluent_kafka import TopicPartition
from psycopg import sql

from assets.scope import run_config
from fairlead.archive import SampleArchive
from fairlead.errors import ClocksApartError
from fairlead.store.history_queries import read_groups
from fairlead.workflows.snapshot_decisions import decide_on
from tests.conftest import KafkaTopic
from tests.fixtures.consumer_groups import Commit, Join
from tests.fixtures.pipelines import MakeGroup, StartConsumers, sample
from tests.full_disk import no_room
from tests.pipeline import SKEWED, Pipeline
from tests.recalled import BUSY, CONSUMED, IDLE

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.postgres,
    pytest.mark.spark,
    pytest.mark.usefixtures("spark"),
]

HOUR = timedelta(hours=1)
#: Time between the samples that `Pipeline.recall` invents.
STEP = timedelta(minutes=5)
#: The heavy partitions of `SKEWED`. At first, member `one` owns both.
HEAVY = (0, 1)
PLANNER = {"assets", "fairlead", "orchestration"}


@contextmanager
def clock_off(by: timedelta) -> Iterator[None]:
    """Make the clock of the planner's modules wrong; brokers and database keep the right time."""

    class Clock(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Any:
            return datetime.now(tz) + by

    with pytest.MonkeyPatch.context() as patch:
        for name, module in [*sys.modules.items()]:
            if name.partition(".")[0] in PLANNER and vars(module).get("datetime") is datetime:
                patch.setattr(module, "datetime", Clock)
        yield


def requested(pipeline: Pipeline) -> dg.RunRequest:
    """Return the only run request of the planning sensor."""
    tick = pipeline.sensor("planning_sensor")
    assert tick.run_requests, tick.skip_message
    (request,) = tick.run_requests
    return request


def run_requested(pipeline: Pipeline, **arguments: Any) -> dg.ExecuteInProcessResult:
    """Run the planning job as the planning sensor requests it."""
    request = requested(pipeline)
    assert request.partition_key is not None
    options = {"run_config": request.run_config, "tags": request.tags}
    return pipeline.run("planning", request.partition_key, **options, **arguments)


def assert_relieved(pipeline: Pipeline, group: str) -> None:
    """Check that the group has one plan, which gives the heavy partitions to different members."""
    document = pipeline.only_version(group).verify()
    of_heavy = [
        name
        for name, share in document.members.items()
        for numbers in share.partitions.values()
        for number in numbers.tolist()
        if number in HEAVY
    ]
    assert sorted(of_heavy) == ["one", "two"]


def row_of(pipeline: Pipeline, group: str) -> dict[str, Any]:
    """Return a group's row of the table that `fairlead groups` shows."""
    (row,) = [row for row in read_groups(pipeline.store.engine) if row["group"] == group]
    return row


def test_clock_that_jumps_an_hour(
    pipeline: Pipeline, make_group: MakeGroup, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the planner's clock is wrong, sampling and planning fail and store nothing.

    When the clock is right again, the group is sampled and planned.
    """
    group = make_group("a", trouble=True)
    pipeline.know(group)
    sample(pipeline, group)
    before = row_of(pipeline, group)
    request = requested(pipeline)
    monkeypatch.setattr("orchestration.planning_sensor.AFTER_FAILURE", timedelta(0))
    # The sensor must sample, even if the first sample was slow, as on a busy machine. Normally, a
    # run of the job `sample` would then take the next sample.
    monkeypatch.setattr("orchestration.samples.IN_A_TICK_S", float("inf"))
    with clock_off(HOUR):
        series = pipeline.warehouse.snapshots()
        with pytest.raises(ClocksApartError, match="ahead of the database's"):
            pipeline.sensor("group_samples")
        arguments = {"run_config": request.run_config, "tags": request.tags}
        run = pipeline.run("planning", group, raise_on_error=False, **arguments)
        assert not run.success
        assert pipeline.warehouse.snapshots() == series
    assert row_of(pipeline, group) == before
    assert pipeline.decisions(group) == []

    # Discard the first sample. The test has sent no records since, so on a slow machine, the
    # group would seem to have been idle for minutes.
    shutil.rmtree(Path(pipeline.settings.warehouse_path) / "samples")
    sample(pipeline, group)
    assert run_requested(pipeline).success
    assert_relieved(pipeline, group)
    after = row_of(pipeline, group)
    assert (after["diagnosis"], after["outcome"]) == ("unbalanced", "plan")
    assert after["since"] == before["since"] < after["last_seen"] < datetime.now(UTC)


def test_two_runs_over_one_cohort(
    pipeline: Pipeline, start_consumers: StartConsumers, unique_name: str
) -> None:
    """Each of two simultaneous runs uses its own snapshot. Only one plan per group is made."""
    a, b = names = [f"{unique_name}-{name}" for name in "ab"]
    for name in names:
        start_consumers(name)
    pipeline.configure(
        f"""
        [[policies]]
        groups = "{unique_name}-*"
        cohort = "fleet"
        approval = {{automatic = true, forbidden_statuses = []}}
        """
    )

    def second(*arguments: Any) -> Any:
        patch.undo()
        assert pipeline.run("planning", "fleet", run_config=run_config({"fleet": [b]})).success
        return decide_on(*arguments)

    with pytest.MonkeyPatch.context() as patch:  # the second run starts before the first decides
        patch.setattr("assets.assignment_plan.decide_on", second)
        patch.setattr("fairlead.workflows.snapshot_decisions.AT_ONCE", 1)
        assert pipeline.run("planning", "fleet").success

    of_first, of_second = pipeline.warehouse.snapshots()
    decided = pipeline.sql("SELECT group_id, snapshot_id, outcome FROM fairlead.decision")
    outcomes = {(row["group_id"], row["snapshot_id"]): row["outcome"] for row in decided}
    assert outcomes.keys() == {(a, of_first), (b, of_first), (b, of_second)}
    for name in names:
        (planned,) = [
            key for key, outcome in outcomes.items() if (key[0], outcome) == (name, "plan")
        ]
        plan = pipeline.only_version(name)
        assert (plan.state, plan.snapshot_id) == ("published", planned[1])
        record = pipeline.record(name)
        assert record is not None
        assert record.value == plan.document


@contextmanager
def database_away(pipeline: Pipeline) -> Iterator[None]:
    """End all connections to the pipeline's database; refuse new connections within the block."""
    url = pipeline.store.engine.url
    name, server = sql.Identifier(str(url.database)), url.set(database="postgres")
    address = server.set(drivername="postgresql").render_as_string(hide_password=False)
    allow = sql.SQL("ALTER DATABASE {} ALLOW_CONNECTIONS {}")
    end = "SELECT pg_terminate_backend(pid, 600000) FROM pg_stat_activity WHERE datname = %s"
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(allow.format(name, sql.SQL("false")))
        connection.execute(end, [url.database])
        try:
            yield
        finally:
            connection.execute(allow.format(name, sql.SQL("true")))


def test_outage_of_the_database_for_fifty_minutes(
    pipeline: Pipeline, kafka_topic: KafkaTopic, commit: Commit, join: Join, unique_name: str
) -> None:
    """During an outage, samples are archived; the first sample after the outage requests a plan.

    Samples are five minutes apart, so that delays on a slow machine are short in comparison.
    """
    pipeline.configure(f'[discovery]\ninclude = ["{unique_name}"]\n')
    pipeline.know(unique_name)
    topic, reads, arrives = kafka_topic(partitions=4), (BUSY, BUSY, IDLE, IDLE), (35, 34, 6, 6)
    pipeline.produce(topic, [CONSUMED + lag for lag in SKEWED])
    commit(unique_name, {(topic, number): CONSUMED for number in range(4)})
    members = join(unique_name, [topic], 4, [{"client.id": "one"}, {"client.id": "two"}])

    def age_by_a_step() -> None:
        pipeline.produce(topic, arrives)
        for member in members:
            mine = [partition.partition for partition in member.assignment()]
            for offset in member.committed([TopicPartition(topic, number) for number in mine]):
                done = offset.offset + reads[offset.partition]
                member.commit(
                    offsets=[TopicPartition(topic, offset.partition, done)], asynchronous=False
                )

    with clock_off(-10 * STEP):
        pipeline.recall(unique_name)
    began = datetime.now(UTC)
    with database_away(pipeline):
        for steps in range(9, 0, -1):
            age_by_a_step()
            with clock_off(-steps * STEP):
                skipped = str(pipeline.sensor("group_samples").skip_message)
            assert "not currently accepting connections" in skipped
        for sensor in ("planning_sensor", "approved_plans", "plan_life"):
            assert "tries again" in str(pipeline.sensor(sensor).skip_message)
    now = datetime.now(UTC)
    archive = SampleArchive(pipeline.settings.warehouse_path)
    during = archive.read(began - 9.5 * STEP, now)
    assert during.num_rows == 9
    assert pipeline.store.known_groups() == []

    age_by_a_step()
    assert f"1 group needs a plan: {unique_name}" in str(
        pipeline.sensor("group_samples").skip_message
    )
    assert run_requested(pipeline).success
    assert_relieved(pipeline, unique_name)
    assert row_of(pipeline, unique_name)["since"] > now  # the first diagnosis after the outage


def test_damaged_sample_files_prevent_no_plan(
    pipeline: Pipeline, make_group: MakeGroup, tmp_path: Path
) -> None:
    """Damaged sample files are moved to another folder, and plans are made without them."""
    trouble, fine = make_group("a", trouble=True), make_group("b", trouble=False)
    pipeline.know(trouble, fine)
    for group in (trouble, fine):
        pipeline.recall(group)
    folder = tmp_path / "warehouse" / "samples"
    *_, newest, flipped, cut = sorted(folder.glob("2*/*.parquet"))[:-8]
    cut.write_bytes(cut.read_bytes()[:300])
    content = bytearray(flipped.read_bytes())
    content[60:80] = bytes(20)
    flipped.write_bytes(content)
    newest.write_bytes(b"")
    cut.with_name("foreign.parquet").write_bytes(b"something")
    assert f"1 group needs a plan: {trouble}" in str(pipeline.sensor("group_samples").skip_message)
    assert len(list((folder / "damaged").iterdir())) == 4
    max(folder.glob("2*/*.parquet")).write_bytes(
        b""
    )  # the sample that requested the run is damaged; the run takes a new sample
    assert run_requested(pipeline).success
    assert len(list((folder / "damaged").iterdir())) == 5
    assert_relieved(pipeline, trouble)
    assert row_of(pipeline, trouble)["diagnosis"] == "unbalanced"
    assert row_of(pipeline, fine)["diagnosis"] == "healthy"


def test_full_disk_for_samples_stops_no_analysis(pipeline: Pipeline, make_group: MakeGroup) -> None:
    """If the disk is full, the sampling tick reports this, and still names the group to plan."""
    trouble = make_group("a", trouble=True)
    pipeline.recall(trouble)
    with no_room():
        tick = str(pipeline.sensor("group_samples").skip_message)
        assert "The next sample is due in" in str(pipeline.sensor("group_samples").skip_message)
    assert f"1 group needs a plan: {trouble}. It is analysed, but not stored: cannot write" in tick
    assert row_of(pipeline, trouble)["diagnosis"] == "unbalanced"
