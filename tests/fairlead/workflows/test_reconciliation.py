"""Foreign records in the plan topic are detected, and the planner sends its plans again."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewPartitions

from fairlead.followers.core.plan_cache import PlanCache, PlanRecord, PlanState
from fairlead.kafka.plan_topic import PlanTopic
from fairlead.settings import Settings
from fairlead.store import PlanStore, StoredPlan
from fairlead.wire.partitions import partition_for_key
from fairlead.wire.record import Headers
from fairlead.workflows.delivery import PublishOptions
from fairlead.workflows.reconciling import differences, withdraw
from tests.fairlead.workflows.plans import run
from tests.records import SIGNER, signed, unsigned
from tests.waiting import PATIENCE_S, eventually

pytestmark = [pytest.mark.kafka, pytest.mark.postgres]

Approve = Callable[..., StoredPlan]
Put = Callable[[bytes | None, Headers], None]
OPTIONS = PublishOptions(timedelta(hours=6), SIGNER)


@pytest.fixture
def published(store: PlanStore, topic: PlanTopic, approve: Approve) -> StoredPlan:
    """Return a published plan with a signed record."""
    approve()
    run(store, topic, options=OPTIONS, now=datetime.now(UTC))
    assert differences(store, None, topic=topic, verifier=OPTIONS.verifier()) == []
    return store.get("orders", 1)


@pytest.fixture
def put(settings: Settings, topic: PlanTopic) -> Put:
    """Return a function that writes a record with the group's key, as any producer can."""
    producer = Producer({"bootstrap.servers": settings.kafka.bootstrap_servers})

    def put(value: bytes | None, headers: Headers) -> None:
        producer.produce(topic.name, value, key=b"orders", headers=list(headers), partition=0)
        assert producer.flush(PATIENCE_S) == 0

    return put


def found_and_mended(store: PlanStore, topic: PlanTopic) -> list[str]:
    """Reconcile, check that no difference is left, and return the previous differences."""
    found = differences(store, None, topic=topic, verifier=OPTIONS.verifier())
    sent = run(store, topic, options=OPTIONS, now=datetime.now(UTC))
    assert [done.why for done in sent if done.position] == [difference.what for difference in found]
    assert differences(store, None, topic=topic, verifier=OPTIONS.verifier()) == []
    return [difference.what for difference in found]


def new_follower(topic: PlanTopic) -> PlanState:
    """Return the state of a new follower that has read the group's newest record."""
    cache = PlanCache("orders", topic.origin, OPTIONS.verifier())
    record = topic.read("orders")
    assert record is not None
    cache.apply(PlanRecord(0, b"orders", record.value, tuple(record.headers)))
    return cache.state


def test_what_covers_a_plan_is_covered_again(
    store: PlanStore, topic: PlanTopic, published: StoredPlan, put: Put
) -> None:
    """After garbage, an unsigned copy or a tombstone, the same version is sent again."""
    before = new_follower(topic).seen
    for value, headers in (
        (b"garbage", []),
        (published.document, unsigned(published.document)),
        (None, []),
    ):
        put(value, headers)
        assert found_and_mended(store, topic) == ["followers refuse its record"]
        assert new_follower(topic).seen == before


def test_an_older_record_that_is_sent_again_lasts_until_the_next_pass(
    store: PlanStore, topic: PlanTopic, published: StoredPlan, approve: Approve, put: Put
) -> None:
    """New members follow a replayed signed record only until the planner sends its plan again."""
    record = topic.read("orders")
    assert record is not None
    approve("s2")
    run(store, topic, options=OPTIONS, now=datetime.now(UTC))
    put(published.document, record.headers)
    assert new_follower(topic).seen.version == 1
    (what,) = found_and_mended(store, topic)
    assert "an older one" in what
    assert new_follower(topic).seen.version == 2


def test_an_impossible_epoch_is_not_exceeded(
    store: PlanStore, topic: PlanTopic, published: StoredPlan, put: Put
) -> None:
    """A record with the largest epoch is refused, and does not raise the planner's epoch."""
    before = new_follower(topic).seen
    last = 10**18 - 1
    put(published.document, signed(published.document, origin=topic.origin, epoch=last))
    assert found_and_mended(store, topic) == ["followers refuse its record"]
    assert new_follower(topic).seen == before


def test_plan_is_sent_once_while_another_producers_transaction_is_open(
    store: PlanStore, topic: PlanTopic, settings: Settings, approve: Approve, unique_name: str
) -> None:
    """An open transaction hides the plan from all readers, which the result reports."""
    other = Producer(
        {
            "bootstrap.servers": settings.kafka.bootstrap_servers,
            "transactional.id": unique_name,
        }
    )
    other.init_transactions(30)
    other.begin_transaction()
    other.produce(topic.name, b"anything", key=b"orders", partition=0)
    assert other.flush(PATIENCE_S) == 0
    approve()
    (done,) = run(store, topic, options=OPTIONS)
    assert "consumers cannot read it yet" in done.reason
    other.abort_transaction(30)
    assert topic.held_up(0, 1) is None
    assert differences(store, None, topic=topic, verifier=OPTIONS.verifier()) == []


def test_what_the_database_has_forgotten_is_outdone_by_a_new_epoch(
    store: PlanStore, topic: PlanTopic, published: StoredPlan, put: Put
) -> None:
    """After a database restore, a new epoch makes followers return from version 7 to 1."""
    record = topic.read("orders")
    assert record is not None
    epoch = int(dict(record.headers)["epoch"])
    ahead = published.document.replace(b'"version":1', b'"version":7')
    put(ahead, signed(ahead, group="orders", version=7, origin=topic.origin, epoch=epoch))
    (what,) = found_and_mended(store, topic)
    assert "version 7" in what
    seen = new_follower(topic).seen
    assert (seen.version, seen.epoch > epoch) == (1, True)


def test_a_topic_that_grew_has_every_plan_in_the_partition_of_its_key(
    settings: Settings, store: PlanStore, topic: PlanTopic, published: StoredPlan
) -> None:
    """After the topic grows, the plan is sent to the partition that its key now has."""
    admin = AdminClient({"bootstrap.servers": settings.kafka.bootstrap_servers})
    count = next(n for n in range(2, 99) if partition_for_key("orders", n))
    admin.create_partitions([NewPartitions(topic.name, count)])[topic.name].result(PATIENCE_S)
    kafka = settings.kafka.model_copy(update={"plan_topic": topic.name})
    eventually(
        lambda: PlanTopic(kafka).partition_for_key("orders") != 0, "brokers know the new partitions"
    )
    with PlanTopic(kafka) as grown:
        assert found_and_mended(store, grown) == ["the topic has no record of it"]
        assert new_follower(grown).plan is not None
    assert published.partition == 0


def test_a_withdrawal_that_was_covered_is_sent_again(
    store: PlanStore, topic: PlanTopic, published: StoredPlan, put: Put
) -> None:
    """A replayed withdrawn plan is followed only until the next reconciliation."""
    record = topic.read("orders")
    assert record is not None
    withdraw(store, "orders", topic=topic, options=OPTIONS, reason="enough")
    put(published.document, record.headers)
    assert new_follower(topic).plan is not None
    found_and_mended(store, topic)
    assert new_follower(topic).plan is None
