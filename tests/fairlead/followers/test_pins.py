"""The log through which members agree, on a real broker."""

import random
from collections.abc import Callable
from contextlib import closing

import pytest

from fairlead.followers.pin_records import Pin, Record, encode
from fairlead.followers.pins import PinLog
from fairlead.sandbox import Services
from tests.fairlead.followers.helpers import eventually

pytestmark = pytest.mark.kafka


def large_pin() -> Pin:
    """Return a pin of 1,000 members and 50,000 partitions, dealt out without any order."""
    partitions = [
        (f"orders-of-region-{topic}", number) for topic in range(1000) for number in range(50)
    ]
    random.Random(1).shuffle(partitions)
    shares: dict[str, dict[str, tuple[int, ...]]] = {}
    for number, (topic, partition) in enumerate(partitions):
        share = shares.setdefault(f"consumer-{number % 1000:032}", {})
        share[topic] = tuple(sorted((*share.get(topic, ()), partition)))
    topics = tuple(sorted({topic for topic, _ in partitions}))
    return Pin(1, "consumer-1", topics, shares, plan_version=1)


def test_pin_of_a_large_group_comes_through(
    services: Services, unique_name: str, kafka_topic: Callable[..., str]
) -> None:
    """It is larger than the megabyte that brokers take; compressed it is not."""
    pin, read = large_pin(), list[Record]()
    assert len(encode(pin)) > 1_048_588
    connection = {"bootstrap.servers": services.bootstrap_servers}
    with closing(PinLog.open(unique_name, connection, kafka_topic(), timeout_s=10.0)) as log:
        log.append(pin)

        def arrived() -> bool:
            assert log.broken is None
            read.extend(entry.record for entry in log.read(0.1))
            return bool(read)

        eventually(arrived, "the pin is read")
    assert read == [pin]
