"""Publication, on a real store and a real topic: the approved bytes or nothing."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import psycopg
import pytest

from fairlead.domain.groups import LiveGroup
from fairlead.errors import GroupError, KafkaUnavailableError
from fairlead.kafka.plan_topic import PlanTopic
from fairlead.settings import Settings
from fairlead.store import PlanStore, StoredPlan
from fairlead.store.outbox import Outbox, PublishRequest
from fairlead.wire.document import MemberShare
from fairlead.wire.record_reading import read_record
from fairlead.wire.signing import Verifier
from fairlead.workflows.delivery import PublishOptions
from fairlead.workflows.publication import Live, Published, publish_all, settle_all
from fairlead.workflows.retirement import retire
from tests.conftest import KafkaTopic
from tests.fairlead.store.conftest import SNAPSHOT_AT
from tests.fairlead.workflows.plans import OPTIONS, Dying, as_planned, nobody
from tests.fairlead.workflows.plans import live as as_planned_all
from tests.records import PUBLIC, SIGNER

pytestmark = [pytest.mark.kafka, pytest.mark.postgres]

Approve = Callable[..., StoredPlan]


def send(
    store: PlanStore,
    topic: PlanTopic,
    live: Live = as_planned_all,
    options: PublishOptions = OPTIONS,
) -> list[Published]:
    """Settle and publish, as a run does."""
    now = SNAPSHOT_AT
    settled = settle_all(store, ["orders"], live=live, topic=topic, options=options, now=now)
    waiting = store.approved_unpublished(["orders"])
    return [
        *settled,
        *publish_all(store, waiting, live=live, topic=topic, options=options, now=now),
    ]


@pytest.fixture
def dying(topic: PlanTopic, settings: Settings) -> PlanTopic:
    """Return a sender that dies when its records are committed."""
    return Dying(settings.kafka.model_copy(update={"plan_topic": topic.name}))


def test_approved_bytes_are_sent_and_recorded(
    store: PlanStore, topic: PlanTopic, approve: Approve
) -> None:
    """The record's value is the stored document; the store says where it stands."""
    plan = approve()
    (published,) = send(store, topic)
    record, stored = topic.read("orders"), store.get("orders", 1)
    assert record is not None
    assert record.value == plan.document
    assert published.position == record.position == (stored.partition, stored.record_offset)
    assert (stored.state, stored.topic) == ("published", topic.name)


def test_record_is_signed_where_a_key_is_configured(
    store: PlanStore, topic: PlanTopic, approve: Approve
) -> None:
    """A follower with the public key believes it, and knows how long it holds."""
    plan = approve()
    send(store, topic, options=PublishOptions(timedelta(hours=6), SIGNER))
    record = topic.read("orders")
    assert record is not None
    assert record.value == plan.document
    verifier = Verifier.from_text(PUBLIC)
    told = read_record(
        plan.document, record.headers, group="orders", origin=topic.origin, verifier=verifier
    )
    assert told.identity[1:] == (1, False, plan.sha256)
    assert told.lease_until == SNAPSHOT_AT + timedelta(hours=6)


def test_nothing_is_sent_without_approval(
    store: PlanStore, topic: PlanTopic, propose: Approve
) -> None:
    """A proposed plan is not for publication."""
    propose()
    assert send(store, topic) == []
    assert topic.read("orders") is None
    assert store.get("orders", 1).state == "proposed"


def test_published_plan_is_not_sent_again(
    store: PlanStore, topic: PlanTopic, approve: Approve
) -> None:
    """The second call finds nothing that waits."""
    approve()
    send(store, topic)
    first = topic.read("orders")
    assert send(store, topic) == []
    assert topic.read("orders") == first


def test_death_between_send_and_record_is_finished(
    store: PlanStore, topic: PlanTopic, dying: PlanTopic, approve: Approve
) -> None:
    """The plan is on its way; the next run finds it in the topic, and sends nothing again."""
    plan = approve()
    with pytest.raises(KafkaUnavailableError):
        send(store, dying)
    assert store.get("orders", 1).state == "sending"
    first = topic.read("orders")
    assert first is not None
    assert first.value == plan.document
    (finished,) = send(store, topic)
    assert finished.position == first.position
    assert topic.read("orders") == first
    assert store.get("orders", 1).state == "published"


def test_what_followers_have_is_published_although_the_group_has_changed(
    store: PlanStore, topic: PlanTopic, dying: PlanTopic, approve: Approve
) -> None:
    """Sent, then a crash, then a member leaves: the database says what consumers follow."""
    approve()
    with pytest.raises(KafkaUnavailableError):
        send(store, dying)
    (finished,) = send(store, topic, nobody)
    assert finished.position is not None
    assert store.get("orders", 1).state == "published"
    retire(store, "orders", topic=topic, options=OPTIONS, reason="it can be withdrawn")


@pytest.mark.parametrize(("group", "state"), [(as_planned_all, "published"), (nobody, "stale")])
def test_what_was_intended_and_not_sent_is_sent_or_withdrawn(
    store: PlanStore, topic: PlanTopic, approve: Approve, group: Live, state: str
) -> None:
    """Dead before the send: it goes out if the group still is what the plan was made for."""
    approve()
    with Outbox(store.engine).turn(topic.name, 0) as turn:
        turn.intend([PublishRequest("orders", 1, lease_until=SNAPSHOT_AT)])
    (done,) = send(store, topic, group)
    assert store.get("orders", 1).state == state
    assert (done.position is None) == (state == "stale")
    assert (topic.read("orders") is None) == (state == "stale")


def test_a_record_that_the_topic_refuses_stops_nobody_else(
    settings: Settings, kafka_topic: KafkaTopic, store: PlanStore, approve: Approve
) -> None:
    """The largest of seven is found by halves; the others are published, and it has an end."""
    name = kafka_topic(config={"cleanup.policy": "compact", "max.message.bytes": "20000"})
    random = np.random.default_rng(1)
    for number in range(7):
        weights = random.random(5_000 if number == 4 else 3)
        many = {"t0": weights.size}
        owned = {"t0": np.arange(weights.size, dtype=np.int32)}
        approve(
            group=f"g{number}",
            partition_counts=many,
            members={"a": MemberShare(("t0",), owned)},
            weights={"t0": weights},
        )

    def live(groups: Iterable[str]) -> dict[str, LiveGroup | GroupError]:
        sizes = {f"g{n}": 5_000 if n == 4 else 3 for n in range(7)}
        return {
            group: replace(
                as_planned(group),
                members=(replace(as_planned(group).members[0], name="a"),),
                partition_counts={"t0": sizes[group]},
            )
            for group in groups
        }

    waiting = store.approved_unpublished()
    with PlanTopic(settings.kafka.model_copy(update={"plan_topic": name})) as topic:
        results = list(publish_all(store, waiting, live=live, topic=topic, options=OPTIONS))
        assert {result.group for result in results if result.position is None} == {"g4"}
        states = {f"g{n}": store.get(f"g{n}", 1).state for n in range(7)}
        assert states == {**dict.fromkeys(states, "published"), "g4": "refused"}
        assert topic.read("g4") is None
        assert topic.read("g6") is not None


def test_plan_whose_group_has_changed_is_stale(
    store: PlanStore, topic: PlanTopic, approve: Approve
) -> None:
    """Nothing is sent, and the differences are named."""
    approve()
    (refused,) = send(store, topic, nobody)
    assert refused.position is None
    assert refused.reason == (
        "members that left: orders-1, orders-2; topic t0 has 0 partitions, planned were 3"
    )
    assert store.get("orders", 1).state == "stale"
    assert topic.read("orders") is None


def test_expired_plan_is_stale(store: PlanStore, topic: PlanTopic, approve: Approve) -> None:
    """A plan that waited too long is not sent, although its group is as planned."""
    plan = approve(expires_at=datetime.now(UTC) + timedelta(hours=1))
    assert plan.expires_at is not None
    live = as_planned_all
    (refused,) = publish_all(
        store, [plan], live=live, topic=topic, options=OPTIONS, now=plan.expires_at
    )
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
    (refused,) = send(store, topic)
    assert (refused.position, "hash" in refused.reason) == (None, True)
    assert topic.read("orders") is None
    assert store.get("orders", 1).state == "approved"


def test_plan_that_leaves_a_partition_out_is_not_sent(
    store: PlanStore, topic: PlanTopic, approve: Approve
) -> None:
    """Approved or not: a document that breaks an invariant of assignments is not published."""
    names = ("orders-1", "orders-2")
    approve(members={name: MemberShare(("t0",), {}) for name in names})
    (refused,) = send(store, topic)
    assert (refused.position, "t0-0" in refused.reason) == (None, True)
    assert topic.read("orders") is None
