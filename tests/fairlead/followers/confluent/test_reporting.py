"""Reports of processing times by confluent-kafka's consumer, on a simulated clock."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, Message

from fairlead.followers.confluent.reporting import Reporting
from fairlead.followers.core.meter import Meter


class SlowConsumer(Consumer):
    """A consumer that needs a second to return its member id."""

    now = 0.0

    def memberid(self) -> str:
        """Wait one second, and return the member id, which each report needs."""
        self.now += 1.0
        return "orders-1"


@pytest.fixture
def consumer() -> Iterator[SlowConsumer]:
    slow = SlowConsumer({"group.id": "orders"})
    yield slow
    slow.close()


@pytest.mark.parametrize(
    "take",
    [
        lambda its, consumer, message: its.took(consumer, message),
        lambda its, consumer, message: its.took_list(consumer, [message]),
    ],
    ids=["poll", "consume"],
)
def test_storing_offsets_does_not_count_for_a_record(
    consumer: SlowConsumer, take: Callable[[Reporting, Consumer, Message], Any]
) -> None:
    """A record's processing time begins when the application gets it, after offsets are stored."""
    reporting = Reporting({}, report=True)
    reporting.meter = Meter(300.0, lambda: consumer.now, lambda: 0.0)
    new: Any = Message  # the constructor of Message is untyped
    assert reporting.meter.since == 0.0
    take(reporting, consumer, new(topic="orders", partition=0, offset=0, value=b"value"))
    assert reporting.meter.since == consumer.now == 1.0
