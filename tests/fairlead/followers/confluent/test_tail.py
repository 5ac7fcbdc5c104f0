"""The one consumer through which a follower reads plans and pins, on a real broker."""

import threading
from collections.abc import Callable
from contextlib import closing

import pytest
from confluent_kafka import Producer, TopicPartition

from fairlead.followers.confluent import pin_log
from fairlead.followers.confluent.pin_log import PinLog
from fairlead.followers.confluent.tail import Tail, Tails
from fairlead.followers.confluent.topics import Cluster
from fairlead.sandbox import Services
from fairlead.wire.pins import Mark
from tests.fairlead.followers.helpers import eventually

pytestmark = pytest.mark.kafka

Read = dict[str, list[bytes | None]]


@pytest.fixture
def tails(services: Services, unique_name: str) -> Tails:
    """Return what the readers of one group share."""
    return Tails(Cluster({"bootstrap.servers": services.bootstrap_servers}), unique_name)


def send(services: Services, topic: str, key: str, *values: str) -> None:
    """Write records to the topic's first partition."""
    producer = Producer({"bootstrap.servers": services.bootstrap_servers})
    for value in values:
        producer.produce(topic, value, key=key, partition=0)
    assert producer.flush(30) == 0


def read(tail: Tail, topic: str, timeout_s: float = 0.2) -> list[bytes | None]:
    """Return the values that one reader is handed; its partition's end is not one."""
    messages = tail.read((topic, 0), timeout_s)
    return [message.value() for message in messages if message.error() is None]


def test_each_reader_gets_its_own_whoever_polls(
    services: Services, tails: Tails, kafka_topic: Callable[..., str]
) -> None:
    """A thread waits for the one topic while another reads the other; nobody gets a stranger's."""
    pins, plans = kafka_topic(), kafka_topic()
    tail = tails.begin(TopicPartition(pins, 0, 0))
    assert tails.join(TopicPartition(plans, 0, 0)) is tail
    got: Read = {pins: [], plans: []}
    ended = threading.Event()

    def wait_for_plans() -> None:
        while not ended.is_set():
            got[plans] += read(tail, plans)

    thread = threading.Thread(target=wait_for_plans)
    thread.start()
    wanted: Read = {pins: [], plans: []}
    try:
        for number in range(20):
            topic = (pins, plans)[number % 2]
            send(services, topic, "somebody else", "no")
            send(services, topic, tails.group, str(number))
            wanted[topic].append(str(number).encode())

        def all_read() -> bool:
            got[pins] += read(tail, pins, 0.02)
            return got == wanted

        eventually(all_read, "all is read")
    finally:
        ended.set()
        thread.join()
    tail.remove((pins, 0))
    send(services, plans, tails.group, "last")
    eventually(lambda: read(tail, plans) == [b"last"], "the other reader reads on")
    tail.remove((plans, 0))
    assert not tail.add(TopicPartition(pins, 0, 0))  # the last one has closed it


def test_what_a_topic_was_before_is_read_through_no_tail_that_remembers_it(
    tails: Tails, kafka_topic: Callable[..., str]
) -> None:
    """Who finds its topic made anew begins with a consumer of its own; pins stay where they are."""
    pins, plans = (TopicPartition(kafka_topic(), 0, 0) for _ in range(2))
    tail = tails.begin(pins)
    assert tails.join(plans) is tail
    tail.remove((plans.topic, 0), spoilt=True)
    other = tails.join(plans)
    assert other is not tail
    assert tails.begin(pins) is tails.newest
    tail.remove((pins.topic, 0))
    other.remove((plans.topic, 0))
    assert tails.join(plans) is tails.newest
    for one in (pins, plans):
        tails.newest.remove((one.topic, 0))


def test_producer_is_made_when_there_is_something_to_send_and_let_go_at_rest(
    tails: Tails, kafka_topic: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """At rest a follower has no connection for what it may have to say in an hour."""
    monkeypatch.setattr(pin_log, "_KEPT_S", 0.3)
    with closing(PinLog.open(tails, kafka_topic(), timeout_s=10.0)) as log:
        assert log._producer is None  # noqa: SLF001 - a connection that is not there shows nowhere
        for name in ("one", "two"):
            mark = Mark(name, log.identity)
            log.append(mark)
            eventually(lambda: mark in [e.record for e in log.read(0.1)], "it is read")  # noqa: B023
            eventually(
                lambda: not log.read(0.1) and log._producer is None,  # noqa: SLF001 - as above
                "the producer is let go",
            )
