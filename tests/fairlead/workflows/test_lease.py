"""Leases, on a real store and a real topic: the same plan told again, and nothing besides."""

from collections.abc import Callable
from datetime import datetime, timedelta

import pytest

from fairlead.kafka.plan_topic import PlanTopic
from fairlead.store import PlanStore, StoredPlan
from fairlead.wire.record_reading import VerifiedRecord, read_record
from fairlead.workflows.lease import due, refresh
from fairlead.workflows.publication import publish_all
from fairlead.workflows.retirement import retire
from tests.fairlead.store.conftest import SNAPSHOT_AT
from tests.fairlead.workflows.plans import OPTIONS, live

pytestmark = [pytest.mark.kafka, pytest.mark.postgres]

Step = Callable[..., StoredPlan]
#: A third of the lease is used up.
LATER = SNAPSHOT_AT + OPTIONS.lease / 3


@pytest.fixture
def published(store: PlanStore, topic: PlanTopic, approve: Step) -> StoredPlan:
    """Return a plan that was sent at `SNAPSHOT_AT`."""
    approve()
    send(store, topic, SNAPSHOT_AT)
    return store.get("orders", 1)


def send(store: PlanStore, topic: PlanTopic, now: datetime) -> None:
    waiting = store.approved_unpublished()
    list(publish_all(store, waiting, live=live, topic=topic, options=OPTIONS, now=now))


def tell_again(store: PlanStore, topic: PlanTopic, now: datetime) -> list[tuple[str, str]]:
    plans = store.in_state("published")
    return list(refresh(store, plans, topic=topic, options=OPTIONS, now=now))


def newest(topic: PlanTopic) -> VerifiedRecord:
    record = topic.read("orders")
    assert record is not None
    assert record.value is not None
    return read_record(
        record.value, record.headers, group="orders", origin=topic.origin, verifier=None
    )


def test_plan_is_told_again_when_a_third_of_its_lease_is_used_up(
    store: PlanStore, topic: PlanTopic, published: StoredPlan
) -> None:
    """Not before; and once told, it is not due again."""
    first = newest(topic)
    assert due(store, OPTIONS, LATER - timedelta(seconds=1)) == []
    assert due(store, OPTIONS, LATER) == ["orders"]
    assert tell_again(store, topic, LATER) == []
    assert due(store, OPTIONS, LATER) == []
    again = newest(topic)
    assert (again.identity, again.lease_until) == (first.identity, LATER + OPTIONS.lease)
    assert store.get("orders", 1).lease_until == LATER + OPTIONS.lease
    assert again.identity.sha256 == published.sha256


def test_telling_again_is_no_step_of_the_plan(
    store: PlanStore, topic: PlanTopic, published: StoredPlan
) -> None:
    """No version, no approval, no event, and so no cooldown that would begin anew."""
    before = store.history("orders"), store.last_changes(["orders"])
    tell_again(store, topic, LATER)
    assert (store.history("orders"), store.last_changes(["orders"])) == before
    assert published.version == 1


def test_a_proposal_that_waits_holds_no_lease_up(
    store: PlanStore, topic: PlanTopic, published: StoredPlan, propose: Step
) -> None:
    """Nobody decides overnight: what is followed goes on being followed."""
    propose("s2")
    assert due(store, OPTIONS, LATER) == [published.group]
    tell_again(store, topic, LATER)
    assert newest(topic).lease_until == LATER + OPTIONS.lease
    assert [row["state"] for row in store.history("orders")] == ["published", "proposed"]


def test_a_retired_plan_is_not_told_again(
    store: PlanStore, topic: PlanTopic, published: StoredPlan, approve: Step
) -> None:
    """Its retirement keeps the version; the next plan is of a new epoch."""
    retire(store, "orders", topic=topic, options=OPTIONS, reason="enough")
    retired = newest(topic)
    assert retired.identity.rank[1:] == (1, True)
    assert due(store, OPTIONS, LATER + OPTIONS.lease) == []
    assert tell_again(store, topic, LATER) == []
    assert newest(topic) == retired
    approve("s2")
    send(store, topic, LATER)
    assert newest(topic).identity.epoch > retired.identity.epoch
    assert published.state == "published"
