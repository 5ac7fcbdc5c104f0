"""Records of other producers in the plan topic are detected, and plans are sent again."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewPartitions

from fairlead.domain.records import StoredPlan
from fairlead.followers.core.plan_cache import PlanCache, PlanRecord, PlanState
from fairlead.kafka.plan_topic import PlanTopic
from fairlead.settings import Settings
from fairlead.store.plans import PlanStore
from fairlead.wire.partitions import partition_for_key
from fairlead.wire.record import Headers
from fairlead.workflows.delivery import PublishOptions
from fairlead.workflows.differences import differences
from fairlead.workflows.reconciling import withdraw
from tests.fairlead.workflows.plans import run
from tests.records import SIGNER, newest_record, signed, unsigned
from tests.waiting import PATIENCE_S, eventually

pytestmark = [pytest.mark.kafka, pytest.mark.postgres]

Approve = Callable[..., StoredPlan]
Put = Callable[[bytes | None, Headers], None]
OPTIONS = PublishOptions(timedelta(hours=6), SIGNER)


@pytest.fixture
def published(store: PlanStore, topic: PlanTopic, approve: Approve) -> StoredPlan:
    """Return a published plan whose record is signed."""
    approve()
    run(store, topic, options=OPTIONS, now=datetime.now(UTC))
    assert differences(store, None, topic=topic, verifier=OPTIONS.verifier()) == []
    return store.get("orders", 1)


@pytest.fixture
def put(settings: Settings, topic: PlanTopic) -> Put:
    """Return a function that writes a record with the group's key, as any producer can do."""
    producer = Producer({"bootstrap.servers": settings.kafka.bootstrap_servers})

    def put(value: bytes | None, headers: Headers) -> None:
        producer.produce(topic.name, value, key=b"orders", headers=list(headers), partition=0)
        assert producer.flush(PATIENCE_S) == 0

    return put


def reconciled(store: PlanStore, topic: PlanTopic) -> list[str]:
    """Reconcile the topic with the database; return the differences that were removed."""
    found = differences(store, None, topic=topic, verifier=OPTIONS.verifier())
    sent = run(store, topic, options=OPTIONS, now=datetime.now(UTC))
    reasons = [result.reason for result in sent if result.record]
    assert reasons == [difference.what for difference in found]
    assert differences(store, None, topic=topic, verifier=OPTIONS.verifier()) == []
    return [difference.what for difference in found]


def new_follower(topic: PlanTopic) -> PlanState:
    """Return the state of a new plan follower after it has read the group's newest record."""
    cache = PlanCache("orders", topic.origin, OPTIONS.verifier())
    record = newest_record(topic)
    cache.apply(PlanRecord(0, b"orders", record.value, tuple(record.headers)))
    return cache.state


def test_plan_is_sent_again_after_foreign_records(
    store: PlanStore, topic: PlanTopic, published: StoredPlan, put: Put
) -> None:
    """If another producer writes garbage, an unsigned copy or a tombstone, the plan is re-sent."""
    before = new_follower(topic).seen
    for value, headers in (
        (b"garbage", []),
        (published.document, unsigned(published.document)),
        (None, []),
    ):
        put(value, headers)
        assert reconciled(store, topic) == ["plan followers reject its record"]
        assert new_follower(topic).seen == before


def test_replayed_record_counts_until_the_next_reconciliation(
    store: PlanStore, topic: PlanTopic, published: StoredPlan, approve: Approve, put: Put
) -> None:
    """If an old signed record is replayed, new members follow it until the next reconciliation."""
    record = newest_record(topic)
    approve("s2")
    run(store, topic, options=OPTIONS, now=datetime.now(UTC))
    put(published.document, record.headers)
    assert new_follower(topic).seen.version == 1
    (what,) = reconciled(store, topic)
    assert "which is older" in what
    assert new_follower(topic).seen.version == 2


def test_record_signed_for_another_group_is_ignored(
    store: PlanStore, topic: PlanTopic, published: StoredPlan, put: Put
) -> None:
    """A record signed for another group is refused, even with a high epoch.

    The refused epoch does not affect the planner's next epoch.
    """
    before = new_follower(topic).seen
    last = 10**18 - 1
    put(published.document, signed(published.document, origin=topic.origin, epoch=last))
    assert reconciled(store, topic) == ["plan followers reject its record"]
    assert new_follower(topic).seen == before


def test_plan_is_sent_once_behind_an_open_transaction(
    store: PlanStore, topic: PlanTopic, settings: Settings, approve: Approve, unique_name: str
) -> None:
    """If another producer's open transaction hides the plan, the result reports this.

    Once the transaction has ended, the plan can be read, without a second record.
    """
    other = Producer(
        {
            "bootstrap.servers": settings.kafka.bootstrap_servers,
            "transactional.id": unique_name,
            "transaction.timeout.ms": 600_000,
        }
    )
    other.init_transactions(PATIENCE_S)
    other.begin_transaction()
    other.produce(topic.name, b"anything", key=b"orders", partition=0)
    assert other.flush(PATIENCE_S) == 0
    approve()
    (done,) = run(store, topic, options=OPTIONS)
    assert "consumers cannot read it yet" in done.place
    other.abort_transaction(PATIENCE_S)
    eventually(lambda: topic.held_up(0, 1) is None, "its end is written")
    assert differences(store, None, topic=topic, verifier=OPTIONS.verifier()) == []


def test_restored_database_uses_a_new_epoch(
    store: PlanStore, topic: PlanTopic, published: StoredPlan, put: Put
) -> None:
    """If an older database is restored, plan followers return to the database's older version.

    Version 1 with a higher epoch replaces version 7.
    """
    epoch = int(dict(newest_record(topic).headers)["epoch"])
    ahead = published.document.replace(b'"version":1', b'"version":7')
    put(ahead, signed(ahead, group="orders", version=7, origin=topic.origin, epoch=epoch))
    (what,) = reconciled(store, topic)
    assert "version 7" in what
    seen = new_follower(topic).seen
    assert (seen.version, seen.epoch > epoch) == (1, True)


def test_plans_move_to_their_partition_if_the_topic_grows(
    settings: Settings, store: PlanStore, topic: PlanTopic, published: StoredPlan
) -> None:
    """If the plan topic gets more partitions, a plan is sent to its key's new partition."""
    admin = AdminClient({"bootstrap.servers": settings.kafka.bootstrap_servers})
    count = next(n for n in range(2, 99) if partition_for_key("orders", n))
    admin.create_partitions([NewPartitions(topic.name, count)])[topic.name].result(PATIENCE_S)
    kafka = settings.kafka.model_copy(update={"plan_topic": topic.name})
    eventually(
        lambda: PlanTopic(kafka).partition_for_key("orders") != 0, "brokers know the new partitions"
    )
    with PlanTopic(kafka) as grown:
        assert reconciled(store, grown) == ["the topic has no record of it"]
        assert new_follower(grown).plan is not None
    assert published.partition == 0


def test_withdrawal_is_sent_again_after_a_replay(
    store: PlanStore, topic: PlanTopic, published: StoredPlan, put: Put
) -> None:
    """If a record of a withdrawn plan is replayed, the withdrawal is sent again."""
    record = newest_record(topic)
    withdraw(store, "orders", topic=topic, options=OPTIONS, reason="enough")
    put(published.document, record.headers)
    assert new_follower(topic).plan is not None
    reconciled(store, topic)
    assert new_follower(topic).plan is None
