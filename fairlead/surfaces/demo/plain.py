"""A plain confluent-kafka consumer of the consumer protocol (KIP-848) for a demo worker.

Belongs here: the consumer that a worker calls, by confluent-kafka. Does not: the work (`worker`),
nor reading plans, which the broker does.
"""

from collections.abc import Callable, Sequence
from typing import Any

from confluent_kafka import Consumer, KafkaException, TopicPartition

from fairlead.wire.partitions import by_topic

Owned = dict[str, list[int]]


class PlainConsumer:
    """A consumer whose broker assigns.

    Parameters
    ----------
    settings
        Settings of librdkafka.
    topics
        Topics to read.
    assigned
        Called with all owned partitions after each change.
    """

    def __init__(
        self,
        settings: dict[str, Any],
        topics: Sequence[str],
        assigned: Callable[[Owned], object],
    ) -> None:
        self._consumer = Consumer({"group.protocol": "consumer", **settings})
        self._assigned = assigned
        self._consumer.subscribe(list(topics), on_assign=self._assign, on_revoke=self._revoke)

    def poll(
        self, *, timeout_ms: int, max_records: int
    ) -> dict[TopicPartition, list[bytes | None]]:
        """Return records by partition, as kafka-python does."""
        values: dict[TopicPartition, list[bytes | None]] = {}
        for message in self._consumer.consume(max_records, timeout_ms / 1000):
            if (error := message.error()) is None:
                at = TopicPartition(message.topic() or "", message.partition() or 0)
                values.setdefault(at, []).append(message.value())
            elif error.fatal():
                raise KafkaException(error)
        return values

    def close(self) -> None:
        """Commit and leave the group."""
        self._consumer.close()

    def _assign(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        consumer.incremental_assign(partitions)
        self._report()

    def _revoke(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        consumer.incremental_unassign(partitions)
        self._report()

    def _report(self) -> None:
        owned = self._consumer.assignment()
        self._assigned(by_topic((partition.topic, partition.partition) for partition in owned))
