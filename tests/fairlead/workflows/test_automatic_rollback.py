"""Rollback of plans that caused a regression, with a real store and a real topic."""

from collections.abc import Callable
from datetime import timedelta

import numpy as np
import pytest

from benchmarks.simulation.planner import rest_s
from fairlead.domain.policy import Approval, Policy
from fairlead.domain.records import StoredPlan
from fairlead.domain.regression import Regression
from fairlead.kafka.plan_topic import PlanTopic
from fairlead.store.engine import transaction
from fairlead.store.event_queries import read_history
from fairlead.store.monitoring import read_all_groups
from fairlead.store.plans import PlanStore
from fairlead.store.regressions import open_regressions, record_regression
from fairlead.wire.record import withdrawn_value
from fairlead.workflows.automatic_rollback import roll_back_regressions
from fairlead.workflows.proposal import carry_out
from fairlead.workflows.publication import withdrawals_of_regressions
from fairlead.workflows.reconciling import reconcile
from tests.fairlead.workflows.plans import OPTIONS, live
from tests.fairlead.workflows.test_rollback import SECOND, following_second
from tests.fixtures.plans import SNAPSHOT_AT, MakeDraft, record_publication
from tests.records import newest_record

pytestmark = [pytest.mark.kafka, pytest.mark.postgres]

Step = Callable[..., StoredPlan]
BY_ITSELF = Policy(approval=Approval(automatic=True, max_moves=0))
WORSE = Regression("much later than before", np.zeros(3, np.int32), sure=True)
NOW = SNAPSHOT_AT + timedelta(days=1)


def back(
    store: PlanStore, policy: Policy = BY_ITSELF, found: Regression = WORSE
) -> list[StoredPlan]:
    return roll_back_regressions(store, {"orders": found}, [policy], live=following_second, now=NOW)


def ended(store: PlanStore) -> list[str]:
    """Return the groups whose metrics show that a plan was replaced because it was a regression."""
    rows = read_all_groups(store.engine)["ended_regressions"]
    return [row["group_id"] for row in rows if row["ended_at"] is not None]


def test_rollback_is_to_the_previous_version_with_a_back_off(
    store: PlanStore, publish: Step, draft: MakeDraft
) -> None:
    """The policy approves the rollback; new plans must wait. History and metrics show both."""
    publish("s1")
    publish("s2", members=SECOND)
    (made,) = back(store)
    assert (made.version, made.state, made.rolled_back_from) == (3, "approved", 1)
    assert "version 2 caused a regression: much later than before" in made.reason
    assert back(store) == []
    history = read_history(store.engine, "orders", since=None, limit=20)
    (event,) = [row for row in history if row["event"] == "regression"]
    assert (event["version"], event["reason"].split(";")[0]) == (2, "much later than before")
    readings = read_all_groups(store.engine)
    assert [(row["group_id"], row["times"]) for row in readings["back_offs"]] == [("orders", 1)]
    assert readings["ended_regressions"] == []
    (outcome,) = carry_out(store, [draft("s3")], [BY_ITSELF], NOW)
    assert outcome.stored.outcome == "no change"
    assert "group orders is in back-off until" in outcome.stored.reason
    record_publication(store, made)
    assert ended(store) == ["orders"]


def test_rollback_under_a_manual_policy_is_proposed_once(store: PlanStore, publish: Step) -> None:
    """With a manual policy, a rollback waits for a person; if rejected, it is not repeated."""
    publish("s1")
    publish("s2", members=SECOND)
    (made,) = back(store, Policy())
    assert (made.state, made.rolled_back_from) == ("proposed", 1)
    store.reject("orders", made.version, reason="it is the deploy")
    assert back(store, Policy()) == []


def test_first_plan_under_four_eyes_is_not_withdrawn(store: PlanStore, publish: Step) -> None:
    """If the database requires two approvers, a regression is stored, but no plan is withdrawn."""
    publish("s1")
    with transaction(store.engine) as connection:
        connection.exec_driver_sql("INSERT INTO fairlead_raw.four_eyes (groups) VALUES ('ord*')")
    assert back(store) == []
    assert [(left.version, left.automatic) for left in open_regressions(store.engine)] == [
        (1, False)
    ]


def test_first_plan_is_withdrawn(store: PlanStore, topic: PlanTopic, publish: Step) -> None:
    """A first plan with a regression is withdrawn, because there is no version to go back to."""
    publish("s1")
    assert back(store) == []
    (done,) = reconcile(
        store,
        ["orders"],
        live=live,
        topic=topic,
        options=OPTIONS,
        now=SNAPSHOT_AT,
        withdrawals=withdrawals_of_regressions(store),
    )
    assert newest_record(topic).value == withdrawn_value("orders", 1)
    assert (done.version, done.withdrawn) == (1, True)
    assert open_regressions(store.engine) == []
    assert ended(store) == ["orders"]


def test_only_regressions_of_published_plans_count(store: PlanStore, publish: Step) -> None:
    """A plan's regression is recorded once, and only while the plan is published."""
    publish("s1")
    publish("s2", members=SECOND)
    assert not record_regression(store.engine, "orders", 1, WORSE, automatic=True)
    assert record_regression(store.engine, "orders", 2, WORSE, automatic=True)
    assert not record_regression(store.engine, "orders", 2, WORSE, automatic=True)


def test_back_off_doubles_with_each_regression(store: PlanStore, publish: Step) -> None:
    """Three regressions cause back-offs of 0.5, 1 and 2 hours, as the simulation assumes."""
    hours = []
    for version in (1, 2, 3):
        publish(f"s{version}")
        assert record_regression(store.engine, "orders", version, WORSE, automatic=False)
        with store.engine.connect() as connection:
            row = connection.exec_driver_sql(
                "SELECT extract(epoch FROM back_off_until - at) / 3600 FROM fairlead.regression"
                " ORDER BY version DESC LIMIT 1"
            )
            hours.append(round(float(row.scalar_one()), 3))
    assert hours == [0.5, 1, 2] == [rest_s(times) / 3600 for times in (1, 2, 3)]
