"""The sensor `approved_plans` publishes plans, after each way to approve them.

`test_planning` tests publication by a planning run.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from uuid import uuid4

import dagster as dg
import psycopg
import pytest
from confluent_kafka.admin import AdminClient
from typer.testing import CliRunner

from fairlead.domain.records import StoredPlan
from fairlead.settings import load_settings
from fairlead.store.acts import act
from fairlead.store.engine import create_store_engine
from fairlead.surfaces.cli import app
from fairlead.surfaces.web.step_pages import sheet
from fairlead.workflows.publication import publish_groups
from tests.fixtures.pipelines import StartConsumers
from tests.fixtures.plans import make_draft
from tests.logins import logins
from tests.orchestration.test_operations import outcome
from tests.pipeline import Consumers, Pipeline
from tests.stored import record_plan, wanted
from tests.waiting import PATIENCE_S, eventually

pytestmark = [pytest.mark.kafka, pytest.mark.postgres]


@pytest.fixture
def proposed(pipeline: Pipeline, start_consumers: StartConsumers, unique_name: str) -> Consumers:
    """Return consumers of a group that has a proposed plan."""
    consumers = start_consumers(unique_name)
    assert CliRunner().invoke(app, ["plan", unique_name]).exit_code == 0
    assert pipeline.only_version(unique_name).state == "proposed"
    return consumers


@pytest.fixture
def approved(pipeline: Pipeline, proposed: Consumers) -> Consumers:
    """Return consumers of a group with a plan that a person approved."""
    plan = pipeline.only_version(proposed.group)
    pipeline.store.approve(proposed.group, 1, sha256=plan.sha256, reason="looks fine", actor="kim")
    return proposed


def propose_again(pipeline: Pipeline, plan: StoredPlan) -> StoredPlan:
    """Store a proposed version with the same assignment as `plan`."""
    document = plan.verify()
    draft = make_draft(
        uuid4().hex,
        group=plan.group,
        members=document.members,
        partition_counts=document.partition_counts,
        weights=document.weights,
        topic_ids=document.topic_ids,
        expires_at=None,
    )
    return record_plan(pipeline.store, draft)


def follows(consumers: Consumers, version: int) -> bool:
    """Return whether all consumers follow this version of the plan."""
    return {m.status().plan_version for m in consumers.members.values()} == {version}


def test_plan_is_published_after_each_way_to_approve(
    pipeline: Pipeline, proposed: Consumers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After approval by SQL, command, job or web page, the sensor publishes the plan.

    The sensor requests a run that observes adoption, and no other run. For SQL, command and job, an
    approver's login suffices.
    """
    group, plan = proposed.group, pipeline.only_version(proposed.group)
    pipeline.know(f"{group}-other", group)
    url = pipeline.settings.postgres.url.get_secret_value()

    with logins(url) as make:
        approver = make("fairlead_approver")

        def by_sql(plan: StoredPlan) -> str:
            notices: list[str] = []
            with psycopg.connect(approver) as connection:
                connection.add_notice_handler(
                    lambda notice: notices.append(str(notice.message_primary))
                )
                connection.execute(
                    "SELECT fairlead.approve_plan(%s, %s, 'agreed')", (group, plan.version)
                )
            return " ".join(notices)

        def by_command(plan: StoredPlan) -> str:
            words = ["plans", "approve", group, str(plan.version), "--reason", "agreed", "--yes"]
            return str(CliRunner().invoke(app, words).output)

        def by_job(plan: StoredPlan) -> str:
            run = pipeline.operate("approve", group=group, version=plan.version, reason="agreed")
            return str(outcome(run)["what happens next"])

        def on_page(plan: StoredPlan) -> str:
            engine = create_store_engine(make("fairlead_web"))
            text = sheet(engine, "approve", group, plan.version, datetime.now(UTC)).sentences
            act(engine, wanted("approve", plan))
            engine.dispose()
            return " ".join(text)

        doors: list[Callable[[StoredPlan], str]] = [by_sql, by_command, by_job, on_page]
        for door in doors:
            with monkeypatch.context() as patch:
                patch.setenv("FAIRLEAD_POSTGRES__URL", approver)
                text = " ".join(door(plan).split())
            assert "approved_plans publishes it within 30 s" in text
            assert pipeline.store.get(group, plan.version).state == "approved"
            tick = pipeline.sensor("approved_plans")
            (event,) = tick.asset_events
            assert isinstance(event, dg.AssetMaterialization)
            assert (event.asset_key.to_user_string(), event.partition) == ("published_plan", group)
            (request,) = tick.run_requests or ()
            assert request.partition_key == group
            record = pipeline.record(group)
            assert record is not None
            assert record.value == plan.document
            eventually(partial(follows, proposed, plan.version), "its consumers follow it")
            plan = propose_again(pipeline, plan)
    pipeline.run("adoption", group)
    assert pipeline.history(group)[-2]["adherence"] == 1


def test_plan_of_a_group_without_a_partition_is_published(
    pipeline: Pipeline, approved: Consumers
) -> None:
    """If Dagster has no partition for a group, the sensor publishes its plan without a run."""
    pipeline.know(f"{approved.group}-other")
    tick = pipeline.sensor("approved_plans")
    assert not tick.run_requests
    assert tick.asset_events == []
    assert pipeline.only_version(approved.group).state == "published"
    assert pipeline.sensor("approved_plans").skip_message == "There is nothing to send."


def test_plan_topic_exists_before_the_first_plan(
    pipeline: Pipeline, unique_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Followers can read the plan topic early: it is created even if there is nothing to send."""
    monkeypatch.setenv("FAIRLEAD_KAFKA__PLAN_TOPIC", unique_name)
    assert publish_groups(pipeline.store, [unique_name], load_settings()) == ({}, [])
    admin = AdminClient(pipeline.settings.kafka.librdkafka())
    eventually(
        lambda: unique_name in admin.list_topics(timeout=PATIENCE_S).topics, "the topic is there"
    )
    admin.delete_topics([unique_name])[unique_name].result(PATIENCE_S)
