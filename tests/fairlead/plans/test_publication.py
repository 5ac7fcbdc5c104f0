"""Publication, on a real store and a real topic: the approved bytes or nothing."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from fairlead.errors import InvalidPlanError, KafkaUnavailableError, TamperedPlanError
from fairlead.kafka.gateway import LiveGroup
from fairlead.kafka.plan_topic import PlanTopic
from fairlead.plans.document import MemberShare
from fairlead.plans.publication import Published, Terms, publish
from fairlead.plans.record_reading import Trust, read_record
from fairlead.plans.signing import Verifier
from fairlead.store import PlanStore, StoredPlan
from tests.fairlead.plans.plans import TERMS, DiesAfterSending, as_planned, emptied
from tests.fairlead.store.conftest import SNAPSHOT_AT
from tests.records import PUBLIC, SIGNER

pytestmark = [pytest.mark.kafka, pytest.mark.postgres]

Approve = Callable[..., StoredPlan]


def send(
    store: PlanStore,
    topic: PlanTopic | DiesAfterSending,
    live: Callable[[str], LiveGroup] = as_planned,
    terms: Terms = TERMS,
) -> Published | None:
    return publish(store, "orders", live=live, sender=topic, now=SNAPSHOT_AT, terms=terms)


def test_approved_bytes_are_sent_and_recorded(
    store: PlanStore, topic: PlanTopic, approve: Approve
) -> None:
    """The record's value is the stored document; the store says where it stands."""
    plan = approve()
    published = send(store, topic)
    record, stored = topic.read("orders"), store.get("orders", 1)
    assert published is not None
    assert record is not None
    assert record.value == plan.document
    assert published.position == record.position == (stored.partition, stored.record_offset)
    assert (stored.state, stored.topic) == ("published", topic.name)


def test_record_is_signed_where_a_key_is_configured(
    store: PlanStore, topic: PlanTopic, approve: Approve
) -> None:
    """A follower with the public key believes it, and knows how long it holds."""
    plan = approve()
    send(store, topic, terms=Terms(timedelta(hours=6), SIGNER))
    record = topic.read("orders")
    assert record is not None
    assert record.value == plan.document
    trust = Trust(Verifier.from_text(PUBLIC))
    told = read_record(
        plan.document, record.headers, group="orders", origin=topic.origin, trust=trust
    )
    assert told.identity[1:] == (1, False, plan.sha256)
    assert told.lease_until == SNAPSHOT_AT + timedelta(hours=6)


def test_nothing_is_sent_without_approval(
    store: PlanStore, topic: PlanTopic, propose: Approve
) -> None:
    """A proposed plan is not for publication."""
    propose()
    assert send(store, topic) is None
    assert topic.read("orders") is None
    assert store.get("orders", 1).state == "proposed"


def test_published_plan_is_not_sent_again(
    store: PlanStore, topic: PlanTopic, approve: Approve
) -> None:
    """The second call finds nothing that waits."""
    approve()
    send(store, topic)
    first = topic.read("orders")
    assert send(store, topic) is None
    assert topic.read("orders") == first


def test_death_between_send_and_record_sends_the_same_bytes_again(
    store: PlanStore, topic: PlanTopic, approve: Approve
) -> None:
    """The plan stays approved; repeating it gives one version, one value, a later offset."""
    plan = approve()
    with pytest.raises(KafkaUnavailableError):
        send(store, DiesAfterSending(topic))
    assert store.get("orders", 1).state == "approved"
    first = topic.read("orders")
    published = send(store, topic)
    second = topic.read("orders")
    assert first is not None
    assert second is not None
    assert published is not None
    assert first.value == second.value == plan.document
    assert published.position == second.position > first.position
    assert store.get("orders", 1).state == "published"


def test_plan_whose_group_has_changed_is_stale(
    store: PlanStore, topic: PlanTopic, approve: Approve
) -> None:
    """Nothing is sent, and the differences are named."""
    approve()
    refused = send(store, topic, emptied)
    assert refused is not None
    assert refused.position is None
    assert refused.reason == (
        "members that left: orders-1, orders-2; topic t0 has 0 partitions, planned were 3"
    )
    assert store.get("orders", 1).state == "stale"
    assert topic.read("orders") is None


def test_expired_plan_is_stale(store: PlanStore, topic: PlanTopic, approve: Approve) -> None:
    """A plan that waited too long is not sent, although its group is as planned."""
    due = datetime.now(UTC) + timedelta(hours=1)
    approve(expires_at=due)
    refused = publish(
        store,
        "orders",
        live=as_planned,
        sender=topic,
        now=due,
        terms=TERMS,
    )
    assert refused is not None
    assert refused.reason == "it has expired"
    assert store.get("orders", 1).state == "stale"
    assert topic.read("orders") is None


def test_altered_document_is_not_sent(
    store: PlanStore, store_url: str, topic: PlanTopic, approve: Approve
) -> None:
    """Bytes that were changed behind the database's back are not the approved ones."""
    plan = approve()
    altered = plan.document.replace(b"sticky", b"stucky")
    with psycopg.connect(store_url) as connection:
        connection.execute("SET session_replication_role = replica")  # no triggers
        connection.execute("ALTER TABLE fairlead_raw.plan DROP CONSTRAINT plan_sha256_check")
        connection.execute("UPDATE fairlead_raw.plan SET document = %s", [altered])
    with pytest.raises(TamperedPlanError, match="hash"):
        send(store, topic)
    assert topic.read("orders") is None
    assert store.get("orders", 1).state == "approved"


def test_plan_that_leaves_a_partition_out_is_not_sent(
    store: PlanStore, topic: PlanTopic, approve: Approve
) -> None:
    """Approved or not: a document that breaks an invariant of assignments is not published."""
    names = ("orders-1", "orders-2")
    approve(members={name: MemberShare(("t0",), {}) for name in names})
    with pytest.raises(InvalidPlanError, match="t0-0"):
        send(store, topic)
    assert topic.read("orders") is None
