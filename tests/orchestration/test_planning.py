"""Whole planning runs with real consumers, Kafka, Spark and Postgres."""

from collections.abc import Callable

import dagster as dg
import pytest
from dagster_shared.serdes import serialize_value

from fairlead.wire.document import PlanDocument
from tests.conftest import KafkaTopic
from tests.fixtures.consumer_groups import Commit
from tests.fixtures.pipelines import StartConsumers
from tests.pipeline import APPROVED_BY_POLICY, Consumers, Pipeline, failed_checks, metadata, rows
from tests.waiting import PATIENCE_S, eventually

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.postgres,
    pytest.mark.spark,
    pytest.mark.usefixtures("spark"),
]


#: Bytes. Maximum size of a materialization with its metadata, for one Dagster partition.
MOST_BYTES = 100_000
#: Run configuration with which a run waits until consumers follow a new plan.
PATIENTLY = {"ops": {"plan_adoption": {"config": {"wait_s": PATIENCE_S}}}}


def planned_shares(pipeline: Pipeline, consumers: Consumers, version: int) -> dict[str, list[int]]:
    """Return each consumer's partitions in a version of the group's plan."""
    document = PlanDocument.from_bytes(pipeline.store.get(consumers.group, version).document)
    return {
        name: share.partitions[consumers.topic].tolist() for name, share in document.members.items()
    }


def numbers(result: dg.ExecuteInProcessResult, asset: str) -> dict[str, float]:
    """Return those metadata of an asset that are numbers, which Dagster plots over time."""
    facts = metadata(result, asset).items()
    return {name: value for name, value in facts if isinstance(value, int | float)}


def test_one_run_takes_a_group_from_lag_to_an_adopted_plan(
    pipeline: Pipeline, start_consumers: StartConsumers, unique_name: str
) -> None:
    """A run stores, approves and publishes a plan, which the consumers follow.

    After a consumer leaves, the remaining one owns all partitions. Adherence is still 1: all
    partitions have the owner that the plan gives them if only this consumer is present.
    """
    consumers = start_consumers(unique_name)
    eventually(lambda: consumers.owned == {"one": [0, 1], "two": [2, 3]}, "they follow range")
    pipeline.configure(APPROVED_BY_POLICY)

    result = pipeline.run("planning", unique_name, run_config=PATIENTLY)

    assert failed_checks(result) == {}
    (version,) = pipeline.history(unique_name)
    assert version["version"] == 1
    assert version["state"] == "published"
    assert version["decision"].startswith("approved by policy: ")
    assert version["adherence"] == 1
    assert version["lag_max_before"] == 180
    assert version["lag_max_predicted"] < 180
    assert version["lag_max_achieved"] is None  # the next snapshot will measure it
    plan, record = pipeline.only_version(unique_name), pipeline.record(unique_name)
    assert record is not None
    assert record.value == plan.document
    assert (record.position.partition, record.position.offset) == (
        plan.partition,
        plan.record_offset,
    )
    assert dict(record.headers)["sha256"] == plan.sha256.encode()
    planned = planned_shares(pipeline, consumers, 1)
    eventually(lambda: consumers.owned == planned, "they follow the plan")
    before = pipeline.sql(
        "SELECT member, array_agg(partition ORDER BY partition) AS owned FROM fairlead.lag_history"
        " WHERE group_id = %s GROUP BY member ORDER BY member",
        unique_name,
    )
    assert before == [{"member": "one", "owned": [0, 1]}, {"member": "two", "owned": [2, 3]}]
    predicted = version["lag_max_predicted"]
    expected: dict[str, dict[str, float]] = {
        "partition_lag": {"total lag (records)": 190, "heaviest partition (records)": 100},
        "candidate_plans": {"failed": 0},
        "assignment_plan": {"version": 1},
        "published_plan": {"published": 1, "plans in force": 1},
        "plan_adoption": {"adherence": 1},
    }
    for asset, figures in expected.items():
        assert figures.items() <= numbers(result, asset).items(), asset
    records = metadata(result, "assignment_plan")["figures"].records
    (heaviest,) = (row.data for row in records if row.data["figure"] == "Most loaded consumer")
    assert (heaviest["as it is"], heaviest["as planned"]) == ("180", f"{predicted:,.0f}")
    (published,) = rows(result, "published_plan", "plans")
    assert f" at offset {record.position.offset}, until " in published["position, or reason"]

    # Without the other member, the plan gives all partitions to the remaining member.
    consumers.members["two"].stop()
    eventually(lambda: len(consumers.owned["one"]) == 4, "the other consumer takes over")
    pipeline.run("adoption", unique_name)
    (version,) = pipeline.history(unique_name)
    assert version["adherence"] == 1


def test_one_run_covers_a_range_of_cohorts_and_no_other(
    pipeline: Pipeline, start_consumers: StartConsumers, unique_name: str
) -> None:
    """A run for two of three groups makes plans for these two only, from one snapshot."""
    names = [f"{unique_name}-{number}" for number in range(3)]
    for name in names:
        start_consumers(name)
    pipeline.configure(APPROVED_BY_POLICY)
    pipeline.know(*names)

    result = pipeline.run("planning", *names[:2])

    assert len(pipeline.warehouse.snapshots()) == 1
    states = {name: [row["state"] for row in pipeline.history(name)] for name in names}
    assert states == {names[0]: ["published"], names[1]: ["published"], names[2]: []}
    materialized = [
        event.step_materialization_data.materialization
        for event in result.all_events
        if event.event_type_value == "ASSET_MATERIALIZATION"
    ]
    assert {materialization.partition for materialization in materialized} == set(names[:2])
    for materialization in materialized:
        assert len(serialize_value(materialization)) < MOST_BYTES
        if materialization.asset_key == dg.AssetKey("partition_lag"):
            assert (
                materialization.metadata["total lag (records)"].value == 190
            )  # without the other group's lag


def test_invalid_group_does_not_delay_others_and_is_tried_again(
    pipeline: Pipeline,
    start_consumers: StartConsumers,
    join_raw: Callable[[str, bytes], None],
    unique_name: str,
) -> None:
    """A group that cannot be read fails a check; the other group of its cohort is planned.

    A second run tries to read the group again. For the other group it decides "no change".
    """
    good, broken = f"{unique_name}-a", f"{unique_name}-b"
    consumers = start_consumers(good)
    join_raw(broken, b"\x00\x01\x00")
    pipeline.configure(
        f"""
        [[policies]]
        groups = "{unique_name}-*"
        cohort = "fleet"
        approval = {{automatic = true, forbidden_statuses = []}}
        """
    )

    result = pipeline.run("planning", "fleet")

    assert result.success
    assert pipeline.only_version(good).state == "published"
    ((outcome, reason, version),) = pipeline.decisions(broken)
    assert (outcome, version) == ("failed", None)
    assert failed_checks(result) == {"every_group_was_read": [f"{broken}: {reason}"]}
    severities = {
        evaluation.check_name: evaluation.severity
        for evaluation in result.get_asset_check_evaluations()
    }
    assert severities["every_group_was_read"] is dg.AssetCheckSeverity.WARN
    assert metadata(result, "assignment_plan")["failed"] == 1

    planned = planned_shares(pipeline, consumers, 1)
    eventually(lambda: consumers.owned == planned, "the plan is adopted")
    result = pipeline.run("planning", "fleet")
    assert [outcome for outcome, _, _ in pipeline.decisions(broken)] == ["failed", "failed"]
    first, second = pipeline.decisions(good)
    assert (first[0], first[2], second[0], second[2]) == ("plan", 1, "no change", None)
    assert second[1]
    assert metadata(result, "published_plan")["published"] == 0
    assert [row["version"] for row in pipeline.history(good)] == [1]
    eventually(lambda: consumers.owned == planned, "it is still followed")


def test_groups_with_nothing_to_plan(
    pipeline: Pipeline,
    start_consumers: StartConsumers,
    kafka_topic: KafkaTopic,
    commit: Commit,
    unique_name: str,
) -> None:
    """No plan is published for a missing, an empty and a healthy group. Each has a decision.

    The missing group fails a check. The lag of the other two is measured.
    """
    gone, left, light = groups = [f"{unique_name}-{name}" for name in ("gone", "left", "light")]
    topic = kafka_topic()
    pipeline.produce(topic, [7])
    commit(left, {(topic, 0): 0})
    start_consumers(light, backlog=(0, 0, 0))
    pipeline.configure(APPROVED_BY_POLICY)

    result = pipeline.run("planning", *groups)

    ((outcome, reason, _),) = pipeline.decisions(gone)
    assert outcome == "failed"
    assert failed_checks(result) == {"every_group_was_read": [f"{gone}: {reason}"]}
    assert pipeline.decisions(left) == [
        ("no change", "The group has no members: there is nothing to plan", None)
    ]
    lag = pipeline.sql("SELECT lag FROM fairlead.lag_history WHERE group_id = %s", left)
    assert lag == [{"lag": 7}]
    ((outcome, _, version),) = pipeline.decisions(light)
    assert (outcome, version) == ("no change", None)
    waiting = pipeline.sql(
        "SELECT sum(lag)::int AS lag FROM fairlead.lag_history WHERE group_id = %s", light
    )
    assert waiting == [{"lag": 0}]
    assert [pipeline.record(group) for group in groups] == [None] * 3
