"""Publication of plans from a shell: what the sensor asks for, and what the job refuses.

What a planning run published, and what it left to a person, is in `test_planning`.
"""

import json

import pytest
from confluent_kafka.admin import AdminClient, NewPartitions
from typer.testing import CliRunner

from fairlead.surfaces.cli import app
from orchestration.sensors import TRY_AGAIN_S
from tests.orchestration.conftest import StartConsumers
from tests.pipeline import Consumers, Pipeline, metadata, rows
from tests.waiting import PATIENCE_S, eventually

pytestmark = [pytest.mark.kafka, pytest.mark.postgres]


@pytest.fixture
def proposed(pipeline: Pipeline, start_consumers: StartConsumers, unique_name: str) -> Consumers:
    """Return a group with a plan that nobody has approved."""
    consumers = start_consumers(unique_name)
    pipeline.know(unique_name)
    assert CliRunner().invoke(app, ["plan", unique_name]).exit_code == 0
    assert pipeline.only_version(unique_name).state == "proposed"
    return consumers


@pytest.fixture
def approved(pipeline: Pipeline, proposed: Consumers) -> Consumers:
    """Return a group with a plan that a person approved."""
    plan = pipeline.only_version(proposed.group)
    pipeline.store.approve(proposed.group, 1, sha256=plan.sha256, reason="looks fine", actor="kim")
    return proposed


def test_sensor_asks_for_the_approved_cohort_alone(
    pipeline: Pipeline, approved: Consumers, unique_name: str
) -> None:
    """Of the cohorts known, the one with an approved plan; nothing any more once published."""
    pipeline.know(f"{unique_name}-other")
    (request,) = pipeline.sensor("approved_plans").run_requests or ()
    assert request.partition_key == approved.group
    pipeline.run("publication", approved.group)
    tick = pipeline.sensor("approved_plans")
    assert not tick.run_requests
    assert tick.skip_message == "No approved plan waits in the partitions of 'cohort'."


def test_sensor_tries_again_after_a_while_only(
    pipeline: Pipeline, approved: Consumers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Dagster starts no second run for the same key: a refused plan is no run at every tick."""

    def key_at(now: float) -> str | None:
        monkeypatch.setattr("orchestration.sensors.time.time", lambda: now)
        (request,) = pipeline.sensor("approved_plans").run_requests or ()
        assert request.partition_key == approved.group
        return request.run_key

    assert key_at(0) == key_at(TRY_AGAIN_S - 1) != key_at(TRY_AGAIN_S)


@pytest.mark.usefixtures("proposed")
def test_sensor_passes_over_a_plan_that_nobody_approved(pipeline: Pipeline) -> None:
    """A proposed plan starts no run."""
    assert not pipeline.sensor("approved_plans").run_requests


def test_plan_topic_is_there_before_the_first_plan(
    pipeline: Pipeline, unique_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Followers that wait for it find it without delay: a run with nothing to send creates it."""
    monkeypatch.setenv("FAIRLEAD_KAFKA__PLAN_TOPIC", unique_name)
    result = pipeline.run("publication", unique_name)
    assert metadata(result, "published_plan")["published"] == 0
    admin = AdminClient(pipeline.settings.kafka.librdkafka())
    assert unique_name in admin.list_topics(timeout=PATIENCE_S).topics
    admin.delete_topics([unique_name])[unique_name].result(PATIENCE_S)


def test_job_publishes_what_a_person_approved(pipeline: Pipeline, approved: Consumers) -> None:
    """The approved bytes are sent and followed; the history names whom the database saw."""
    pipeline.run("publication", approved.group)
    plan, record = pipeline.only_version(approved.group), pipeline.record(approved.group)
    assert record is not None
    assert record.value == plan.document
    (version,) = pipeline.history(approved.group)
    (saw,) = pipeline.sql("SELECT session_user::text AS who")
    assert (version["state"], version["decided_by"]) == ("published", saw["who"])
    assert version["adherence"] == 1


def test_plan_is_refused_when_a_member_has_left(pipeline: Pipeline, approved: Consumers) -> None:
    """A plan for members who are no longer there is stale, and says who left."""
    approved.members["two"].stop()
    eventually(lambda: len(approved.owned["one"]) == 4, "the group settles without the member")
    result = pipeline.run("publication", approved.group)
    (row,) = rows(result, "published_plan", "plans")
    assert row["outcome"] == "refused"
    assert row["where or why not"] == "members that left: two"
    assert pipeline.only_version(approved.group).state == "stale"
    assert pipeline.record(approved.group) is None


def test_plan_is_refused_when_a_topic_has_grown(pipeline: Pipeline, approved: Consumers) -> None:
    """A plan that knows fewer partitions than there are is stale, and says which topic grew."""
    admin = AdminClient(pipeline.settings.kafka.librdkafka())
    admin.create_partitions([NewPartitions(approved.topic, 6)])[approved.topic].result(PATIENCE_S)
    result = pipeline.run("publication", approved.group)
    (row,) = rows(result, "published_plan", "plans")
    assert row["where or why not"] == f"topic {approved.topic} has 6 partitions, planned were 4"
    assert pipeline.only_version(approved.group).state == "stale"
    assert pipeline.record(approved.group) is None


def test_altered_document_is_not_sent(pipeline: Pipeline, approved: Consumers) -> None:
    """Bytes that are not the approved ones stay where they are, whatever hash stands beside."""
    plan = pipeline.only_version(approved.group)
    document = json.loads(plan.document)
    document["assignor"] = "mallory"
    forged = json.dumps(document).encode()
    pipeline.tamper(
        "ALTER TABLE fairlead_raw.plan DROP CONSTRAINT plan_sha256_check",
        f"UPDATE fairlead_raw.plan SET document = '\\x{forged.hex()}'",
    )
    result = pipeline.run("publication", approved.group)
    assert metadata(result, "published_plan")["published"] == 0
    (row,) = rows(result, "published_plan", "plans")
    assert "the document's hash is" in str(row["where or why not"])
    assert pipeline.record(approved.group) is None
