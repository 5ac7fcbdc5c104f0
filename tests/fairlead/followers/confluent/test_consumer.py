"""A PlanConsumer follows plans, and otherwise acts like confluent-kafka's Consumer."""

import gc
import sys
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from uuid import uuid4

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from fairlead.errors import ConfigurationError
from fairlead.followers import FollowOptions
from fairlead.followers.confluent import PlanConsumer, log_listener, plan_source
from fairlead.followers.confluent.agreement_log import KafkaCoordinationTopic
from fairlead.followers.confluent.log_listener import MOST_PATIENT, REQUEST_S
from fairlead.followers.core import plan_reader
from fairlead.sandbox import Services
from fairlead.wire.document import PlanDocument
from fairlead.wire.record import Headers
from tests.fairlead.followers.confluent.conftest import SOONER_S
from tests.fairlead.followers.helpers import make_big_plan, make_plan, recreate, spoilt
from tests.programs import ended
from tests.records import PUBLIC, origin_of, signed_plan, unsigned
from tests.waiting import PATIENCE_S, eventually, returned

NewConsumer = Callable[..., PlanConsumer]


@pytest.fixture
def topic(kafka_topic: Callable[..., str]) -> str:
    """Return a topic of four partitions."""
    return kafka_topic(partitions=4)


@pytest.fixture
def made() -> Iterator[list[PlanConsumer]]:
    """Return a list for created consumers, which are closed at the end."""
    made: list[PlanConsumer] = []
    yield made
    for consumer in made:
        consumer.close()


@pytest.fixture
def new_consumer(
    services: Services, unique_name: str, kafka_topic: Callable[..., str], made: list[PlanConsumer]
) -> NewConsumer:
    """Return a function that makes a consumer of the group."""
    plan_topic = kafka_topic(config={"max.message.bytes": "10000000"})
    coordination_topic = kafka_topic()

    def new(
        name: str = "a",
        *,
        rejoin_jitter_s: float | None = 0.0,
        public_keys: str | None = None,
        **config: Any,
    ) -> PlanConsumer:
        settings = {
            "bootstrap.servers": services.bootstrap_servers,
            "group.id": unique_name,
            "client.id": name,
            "auto.offset.reset": "earliest",
            "heartbeat.interval.ms": 300,
            **config,
        }
        options = FollowOptions(
            plan_topic, rejoin_jitter_s=rejoin_jitter_s, public_keys=public_keys
        )
        made.append(PlanConsumer(settings, options=options, coordination_topic=coordination_topic))
        return made[-1]

    return new


def plan(consumer: PlanConsumer, topic: str, version: int, **shares: list[int]) -> PlanDocument:
    return make_plan(
        {name: {topic: share} for name, share in shares.items()},
        partition_counts={topic: 4},
        group=consumer.status().group,
        version=version,
    )


def send(services: Services, consumer: PlanConsumer, value: bytes | None, headers: Headers) -> None:
    """Send a record with the group's key to the plan topic."""
    status = consumer.status()
    producer = Producer(
        {"bootstrap.servers": services.bootstrap_servers, "message.max.bytes": 10_000_000}
    )
    producer.produce(status.plan_topic, value, key=status.group, headers=[*headers])
    assert producer.flush(PATIENCE_S) == 0


def publish(
    services: Services, consumer: PlanConsumer, topic: str, version: int = 1, **shares: list[int]
) -> None:
    value = plan(consumer, topic, version, **shares).to_bytes()
    send(services, consumer, value, unsigned(value))


def poll_until(condition: Callable[[], bool], *consumers: PlanConsumer) -> list[Any]:
    """Poll the consumers until a condition holds; return their messages."""
    messages = list[Any]()

    def holds() -> bool:
        if condition():
            return True
        polled = (follower.poll(0.02) for follower in consumers)
        messages.extend(message for message in polled if message is not None)
        return condition()

    eventually(holds, lambda: [consumer.status() for consumer in consumers])
    return messages


def owned(consumer: Consumer) -> list[int]:
    return sorted(partition.partition for partition in consumer.assignment())


def settle(members: Mapping[str, PlanConsumer], **shares: list[int]) -> None:
    """Poll the members until each owns its share."""
    poll_until(lambda: {n: owned(m) for n, m in members.items()} == shares, *members.values())


def follow(
    services: Services, members: Mapping[str, PlanConsumer], topic: str, **shares: list[int]
) -> None:
    """Publish a plan, subscribe the members, and poll until each owns its share."""
    publish(services, next(iter(members.values())), topic, 1, **shares)
    for member in members.values():
        member.subscribe([topic])
    settle(members, **{name: shares.get(name, []) for name in members})


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("group.id", ""),
        ("group.instance.id", "one"),
        ("partition.assignment.strategy", "cooperative-sticky"),
        ("partition.assignment.strategy", "roundrobin"),
        ("group.protocol", "consumer"),
    ],
)
def test_incompatible_setting_is_refused(setting: str, value: str) -> None:
    """The constructor raises an error that names the setting, before it connects."""
    with pytest.raises(ConfigurationError, match=setting.replace(".", r"\.")):
        PlanConsumer({"bootstrap.servers": "localhost:1", "group.id": "g", setting: value})


@pytest.mark.kafka
def test_pattern_is_refused(new_consumer: NewConsumer) -> None:
    """Subscribing to a pattern is an error, because members' subscriptions must be equal."""
    with pytest.raises(ConfigurationError, match="pattern"):
        new_consumer().subscribe(["^test-.*"])


@pytest.mark.kafka
def test_compacted_coordination_topic_is_refused(
    services: Services,
    unique_name: str,
    kafka_topic: Callable[..., str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A compacted topic is an error, because compaction would remove assignment records."""
    monkeypatch.setattr(log_listener, "REQUEST_S", PATIENCE_S)
    coordination_topic = kafka_topic(config={"cleanup.policy": "compact"})
    config = {"bootstrap.servers": services.bootstrap_servers, "group.id": unique_name}
    with (
        PlanConsumer(config, coordination_topic=coordination_topic) as consumer,
        pytest.raises(ConfigurationError, match="compaction"),
    ):
        consumer.subscribe(["t"])


@pytest.mark.kafka
def test_callbacks_get_the_planned_shares(
    services: Services, new_consumer: NewConsumer, topic: str
) -> None:
    """Callbacks get the plan's shares; assignments and revocations alternate."""
    members = {name: new_consumer(name) for name in "ab"}
    publish(services, members["a"], topic, a=[3], b=[0, 1, 2])
    calls: dict[str, list[tuple[str, list[int]]]] = {"a": [], "b": []}

    def telling(name: str, what: str) -> Callable[[Consumer, list[TopicPartition]], None]:
        return lambda _, share: calls[name].append((what, sorted(p.partition for p in share)))

    for name, member in members.items():
        member.subscribe([topic], telling(name, "own"), telling(name, "revoke"))
    settle(members, a=[3], b=[0, 1, 2])
    for member in members.values():
        member.close()
    assert calls["a"][-2:] == [("own", [3]), ("revoke", [3])]
    assert ("own", [0, 1, 2]) in calls["b"]
    for events in calls.values():
        whats = [what for what, _ in events]
        assert whats == ["own", "revoke"] * (len(whats) // 2)


@pytest.mark.kafka
def test_member_without_a_range_share_owns_its_planned_share(
    services: Services, new_consumer: NewConsumer, topic: str
) -> None:
    """Members to which `range` gives nothing still get their partitions from the plan."""
    members = {name: new_consumer(name) for name in "abcde"}
    follow(services, members, topic, e=[0], d=[1, 2, 3])
    members.pop("d").close()
    everything = [0, 1, 2, 3]
    poll_until(
        lambda: (
            sorted(p for m in members.values() for p in owned(m)) == everything
            and owned(members["e"]) == [0]
        ),
        *members.values(),
    )


@pytest.mark.kafka
def test_error_of_a_callback_is_raised_and_changes_no_share(
    services: Services, new_consumer: NewConsumer, topic: str
) -> None:
    """If `on_assign` raises, `poll` raises the error, and the plan's share is still assigned."""
    members = {name: new_consumer(name) for name in "ab"}
    publish(services, members["a"], topic, a=[3], b=[0, 1, 2])

    def fail(_: Consumer, __: list[TopicPartition]) -> None:
        raise RuntimeError("the application's own")

    failures = []
    members["a"].subscribe([topic], on_assign=fail)
    members["b"].subscribe([topic])

    def settled() -> bool:
        members["b"].poll(0.02)
        try:
            members["a"].poll(0.02)
        except RuntimeError as error:
            failures.append(str(error))
        return {n: owned(m) for n, m in members.items()} == {"a": [3], "b": [0, 1, 2]}

    eventually(settled, "the plan is followed")
    assert set(failures) == {"the application's own"}


@pytest.mark.kafka
def test_subscribing_again_keeps_the_verdict(
    services: Services, new_consumer: NewConsumer, topic: str
) -> None:
    """After a second call of `subscribe`, a member rejoins and gets the same partitions again."""
    members = {name: new_consumer(name) for name in "ab"}
    follow(services, members, topic, a=[3], b=[0, 1, 2])
    for name in "ab":
        before = members[name].status().rebalances
        members[name].subscribe([topic])
        poll_until(
            lambda: members[name].status().rebalances > before,  # noqa: B023 - called at once
            *members.values(),
        )
        settle(members, a=[3], b=[0, 1, 2])


@pytest.mark.kafka
def test_plans_of_a_topic_that_was_created_again_are_adopted(
    services: Services, new_consumer: NewConsumer, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Followers notice a recreated plan topic, although the offsets in it begin at 0 again."""
    monkeypatch.setattr(plan_reader, "_CHECK_S", 0.5)
    consumer = new_consumer()
    publish(services, consumer, topic, 1, a=[0, 1, 2, 3])
    consumer.subscribe([topic])
    poll_until(lambda: consumer.status().plan_version == 1, consumer)
    recreate(services, consumer.status().plan_topic)
    publish(services, consumer, topic, 2, a=[0, 1, 2, 3])
    poll_until(lambda: consumer.status().plan_version == 2, consumer)


@pytest.mark.kafka
def test_plan_of_5_mb_after_invalid_records_is_adopted(
    services: Services, new_consumer: NewConsumer, topic: str
) -> None:
    """Invalid records are skipped without a rebalance; the valid plan after them is followed."""
    follower = new_consumer("a", public_keys=PUBLIC)
    origin = origin_of(services, follower.status().plan_topic)
    good = plan(follower, topic, 1, a=[0], b=[1, 2, 3])
    send(services, follower, *signed_plan(good, origin))
    follower.subscribe([topic])
    poll_until(lambda: follower.status().plan_version == 1, follower)
    asked = follower.status().rejoins_asked
    bad = spoilt(plan(follower, topic, 2, a=[3], b=[0, 1, 2]), origin)
    for value, headers in bad.values():
        send(services, follower, value, headers)
    poll_until(lambda: follower.status().records_skipped == len(bad), follower)
    assert (follower.status().plan_version, follower.status().rejoins_asked) == (1, asked)
    shares = {"a": {topic: [0]}, "b": {topic: [1, 2, 3]}}
    big = make_big_plan(shares, group=follower.status().group, version=2)
    send(services, follower, *signed_plan(big, origin))
    poll_until(lambda: follower.status().plan_version == 2, follower)


@pytest.mark.kafka
def test_close_right_after_subscribing_again(services: Services) -> None:
    """The process does not abort if a consumer with a pending subscription is closed."""
    probe = f"""
from fairlead.followers.confluent import PlanConsumer
config = {{"bootstrap.servers": {services.bootstrap_servers!r}, "group.id": "probe"}}
for _ in range(3):
    with PlanConsumer(config) as one:
        one.subscribe(["absent"])
        one.poll(0.3)
        one.unsubscribe()
        one.subscribe(["absent"])
"""
    ended(sys.executable, "-c", probe)


@pytest.mark.kafka
def test_poll_without_a_broker_returns_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each call waits for at most one request, whose time-out doubles each time up to a limit."""
    checks, check = list[float](), KafkaCoordinationTopic.check

    def noted(self: KafkaCoordinationTopic, timeout_s: float) -> None:
        checks.append(timeout_s)
        check(self, timeout_s)

    monkeypatch.setattr(KafkaCoordinationTopic, "check", noted)
    consumer = PlanConsumer({"bootstrap.servers": "127.0.0.1:1", "group.id": "g", "log_level": 0})
    calls: list[Callable[[], object]] = [lambda: consumer.subscribe(["t"])]
    for call in [*calls, *[lambda: consumer.poll(0.1)] * 3]:
        before = len(checks)
        returned(call)
        assert len(checks) - before <= 1
    consumer.close()
    assert checks == [REQUEST_S * min(2**attempt, MOST_PATIENT) for attempt in range(len(checks))]
    assert checks


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> Iterator[PlanConsumer]:
    """Return a consumer whose broker does not exist, with a short time-out."""
    monkeypatch.setattr(plan_source, "_TIMEOUT_S", 0.1)
    consumer = PlanConsumer({"bootstrap.servers": "127.0.0.1:1", "group.id": "g", "log_level": 0})
    yield consumer
    consumer.close()


def test_text_is_not_a_list_of_topics(alone: PlanConsumer) -> None:
    """A string instead of a list of topics is an error, as for confluent-kafka's Consumer."""
    with pytest.raises(TypeError, match="orders"):
        alone.subscribe("orders")


def test_topics_may_be_any_nonempty_iterable(alone: PlanConsumer) -> None:
    """Any iterable of names is accepted; an empty one, or a name that is no string, is an error."""
    alone.subscribe(topic for topic in ["u", "t", "u"])  # type: ignore[arg-type] # as above
    assert alone._member._topics == ("t", "u")  # noqa: SLF001 - not public
    with pytest.raises(ConfigurationError, match="the list of topics is empty"):
        alone.subscribe([])
    with pytest.raises(TypeError, match="names"):
        alone.subscribe([7])  # type: ignore[list-item] # as above
    assert alone._member._topics == ("t", "u")  # noqa: SLF001 - as above


def test_status_of_a_consumer_outside_its_group(alone: PlanConsumer) -> None:
    """The status reports "in no group" before subscribe, after unsubscribe and after close."""
    outside = []
    steps: tuple[Callable[[], None], ...] = (
        lambda: None,
        lambda: alone.subscribe(["t"]),
        alone.unsubscribe,
        alone.close,
    )
    for step in steps:
        step()
        outside.append("in no group" in str(alone.status().fallback_reason))
    assert outside == [True, False, True, True]
    assert alone.status().rule == "undecided"


def test_calls_of_a_closed_consumer_raise_an_error(
    alone: PlanConsumer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The calls open no connection to the coordination topic, because nothing would close it."""
    alone.subscribe(["t"])
    alone.close()
    names: list[str] = []
    monkeypatch.setattr(KafkaCoordinationTopic, "open", lambda opened: names.append(opened.name))
    for call in (
        lambda: alone.poll(0.1),
        lambda: alone.consume(1, 0.1),
        lambda: alone.subscribe(["t"]),
    ):
        with pytest.raises(RuntimeError):
            call()
    assert names == []
    assert alone._member._listener.log is None  # noqa: SLF001 - it would leak


def test_consumer_deleted_without_close_leaves_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """The consumer's thread ends after the consumer is garbage-collected."""
    monkeypatch.setattr(plan_source, "_TIMEOUT_S", 0.1)
    name = f"fairlead-plans-{uuid4().hex}"
    consumer = PlanConsumer(
        {
            "bootstrap.servers": "127.0.0.1:1",
            "group.id": name.removeprefix("fairlead-plans-"),
            "log_level": 0,
        }
    )
    assert name in {thread.name for thread in threading.enumerate()}
    del consumer
    gc.collect()
    eventually(
        lambda: name not in {thread.name for thread in threading.enumerate()}, "its thread ends"
    )


@pytest.mark.kafka
def test_closing_waits_for_no_broker(
    services: Services, new_consumer: NewConsumer, topic: str, patient_broker: dict[str, Any]
) -> None:
    """Close returns before the broker answers the consumer's last fetch, which takes minutes."""
    follower = new_consumer(**patient_broker)
    follow(services, {"a": follower}, topic, a=[0, 1, 2, 3])
    follower.poll(2.0)
    returned(follower.close, within_s=SOONER_S)


@pytest.mark.kafka
def test_closed_consumer_is_garbage(
    services: Services, new_consumer: NewConsumer, made: list[PlanConsumer], topic: str
) -> None:
    """After close, nothing refers to the member object any more, so its connections are freed."""
    follower = new_consumer()
    follow(services, {"a": follower}, topic, a=[0, 1, 2, 3])
    follower.close()
    left = weakref.ref(follower._member)  # noqa: SLF001 - it holds the connections
    made.clear()
    del follower
    eventually(lambda: gc.collect() >= 0 and left() is None, "nothing refers to it")
