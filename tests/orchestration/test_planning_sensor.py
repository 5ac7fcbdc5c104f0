"""The planning sensor: after samples, it requests one run for all groups that need a plan."""

from datetime import UTC, datetime, timedelta
from typing import Any

import dagster as dg
import pytest
from confluent_kafka.admin import AdminClient

from assets.scope import run_config
from orchestration.planning_sensor import WHY_TAG
from tests.fixtures.pipelines import MakeGroup, sample
from tests.pipeline import Pipeline

pytestmark = [pytest.mark.kafka, pytest.mark.postgres]


def requested(pipeline: Pipeline) -> list[dict[str, Any]]:
    """Return {cohort: groups to plan} for each run that the sensor requests."""
    tick = pipeline.sensor("planning_sensor")
    return [
        request.run_config["ops"]["group_offsets"]["config"]["only"]
        for request in tick.run_requests or ()
    ]


def skipped(pipeline: Pipeline) -> str:
    """Return the reason for which the sensor requests no run."""
    tick = pipeline.sensor("planning_sensor")
    assert not tick.run_requests
    return str(tick.skip_message)


def decide(pipeline: Pipeline, group: str, at: datetime) -> None:
    """Store the decision "no change" on a group, made at the given time."""
    known = "INSERT INTO fairlead_raw.consumer_group VALUES (%s) ON CONFLICT DO NOTHING"
    pipeline.sql(known, group)
    pipeline.sql("SELECT fairlead_raw.ensure_day(%s)", at.date())
    values = (group, at.isoformat(), at, at, "no change", "fine")
    pipeline.sql("INSERT INTO fairlead_raw.decision VALUES (%s, %s, %s, %s, %s, %s)", *values)


def test_one_run_for_all_groups_that_need_a_plan(pipeline: Pipeline, make_group: MakeGroup) -> None:
    """One run is requested for two groups; a tag of the run has the groups and the reasons."""
    a, b, c = (make_group(name, trouble=name != "b") for name in "abc")
    pipeline.know(a, b, c)
    assert "There is no sample yet" in skipped(pipeline)
    assert f"2 groups need a plan: {a}, {c}" in sample(pipeline, a, b, c)
    tick = pipeline.sensor("planning_sensor")
    (request,) = tick.run_requests or ()
    first, second = (a, c) if request.partition_key == a else (c, a)  # the newest cohort is first
    assert request.partition_key == first
    assert request.run_config == run_config({first: [first], second: [second]})
    assert f"2 groups: {first}, {second}. {first}: unbalanced: " in request.tags[WHY_TAG]
    assert f"2 groups: {first}, {second}." in str(tick.cursor)


def test_no_second_run_while_one_is_in_progress(pipeline: Pipeline, make_group: MakeGroup) -> None:
    """The sensor requests no run while a planning run is in progress, or just after a failure."""
    group = make_group("a", trouble=True)
    pipeline.know(group)
    sample(pipeline, group)
    started = dg.DagsterRunStatus.STARTED
    deciding = frozenset({dg.AssetKey("assignment_plan")})
    for job, selected in (("planning", None), ("__ASSET_JOB", deciding)):
        run = dg.DagsterRun(job_name=job, asset_selection=selected, status=started)
        pipeline.instance.add_run(run)
        assert "is under way; plan requests wait" in skipped(pipeline)
        pipeline.instance.report_run_canceled(run)
    run = dg.DagsterRun(job_name="planning", status=started)
    pipeline.instance.add_run(run)
    pipeline.instance.report_run_failed(run)
    assert "last planning run failed; the next one starts in" in skipped(pipeline)


def test_request_after_a_decision_is_repeated_later(
    pipeline: Pipeline, make_group: MakeGroup
) -> None:
    """If a group still needs a plan after a decision, the next run waits for the time `again`."""
    group = make_group("a", trouble=True)
    pipeline.know(group)
    sample(pipeline, group)
    decide(pipeline, group, datetime.now(UTC) - timedelta(hours=1))
    assert requested(pipeline) == [{group: [group]}]
    decide(pipeline, group, datetime.now(UTC))
    why = skipped(pipeline)
    assert "had a decision within the last" in why
    assert why.endswith(f": {group}.")


def test_groups_without_a_recent_decision_are_planned(
    pipeline: Pipeline, make_group: MakeGroup
) -> None:
    """A run is requested even for a healthy group if its last decision is older than `cadence`."""
    a, b = (make_group(name, trouble=False) for name in "ab")
    prefix = a.removesuffix("-a")
    pipeline.configure(
        f'[discovery]\ninclude = ["{prefix}-*"]\n'
        f'[[policies]]\ngroups = "{prefix}-*"\ncohort = "fleet"\ncadence = "P1D"\n'
    )
    pipeline.know("fleet")
    sample(pipeline, a, b)
    decide(pipeline, a, datetime.now(UTC) - timedelta(days=2))
    decide(pipeline, b, datetime.now(UTC))
    assert requested(pipeline) == [{"fleet": [a]}]


def test_missing_brokers_skip_one_tick(
    pipeline: Pipeline, make_group: MakeGroup, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the brokers do not answer, a tick reports this. The next tick takes a sample."""
    make_group("a", trouble=False)
    with monkeypatch.context() as away:
        away.setenv("FAIRLEAD_KAFKA__BOOTSTRAP_SERVERS", "localhost:1")
        away.setattr("orchestration.samples.PATIENCE_S", 1.0)
        librdkafka = AdminClient({"bootstrap.servers": "localhost:1", "log_level": 0})
        by_itself: Any = librdkafka.list_consumer_groups()  # waits for a minute
        assert "Kafka does not answer" in str(pipeline.sensor("group_samples").skip_message)
        assert not by_itself.done()
    assert "Sampled 1 group," in str(pipeline.sensor("group_samples").skip_message)
