"""Read the plan topic with confluent-kafka.

Belongs here: finding and fetching the one partition that holds a group's key. Does not: what a
record means (`plan_cache`).
"""

from collections.abc import Mapping
from typing import Any, Final

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaException,
    Message,
    TopicPartition,
)

from fairlead.followers.partitions import home_of
from fairlead.followers.plan_cache import PlanRecord

_TIMEOUT_S: Final = 5.0
_ENOUGH: Final = 100


class ConfluentSource:
    """The plan topic's partition that holds a group's key, read from its beginning."""

    def __init__(self, consumer: Consumer, partition: TopicPartition) -> None:
        self._consumer = consumer
        self._partition = partition
        _, self._end = consumer.get_watermark_offsets(partition, timeout=_TIMEOUT_S)
        self._read_to = 0
        consumer.assign([TopicPartition(partition.topic, partition.partition, OFFSET_BEGINNING)])

    @classmethod
    def open(
        cls, group: str, connection: Mapping[str, Any], topic: str
    ) -> "ConfluentSource | None":
        """Connect; None where the topic does not exist, or may not be read.

        Parameters
        ----------
        group
            The group id.
        connection
            librdkafka's settings of how to reach the cluster.
        topic
            The plan topic.
        """
        consumer = Consumer(
            {
                **connection,
                "group.id": f"{group}-plans",  # required, never joined
                "enable.auto.commit": False,
                "allow.auto.create.topics": False,
                "auto.offset.reset": "earliest",
            }
        )
        try:
            found = consumer.list_topics(topic, timeout=_TIMEOUT_S).topics[topic]
            if found.error is None:
                number = home_of(group, len(found.partitions))
                return cls(consumer, TopicPartition(topic, number))
        except BaseException:
            consumer.close()
            raise
        consumer.close()
        return None

    def __str__(self) -> str:
        return f"{self._partition.topic}, partition {self._partition.partition}"

    def read(self, timeout_s: float) -> list[PlanRecord]:
        """Wait at most `timeout_s` for the next record, and take what else is there.

        Raises
        ------
        KafkaException
            The topic is gone, or may not be read any more.
        """
        first = self._consumer.poll(timeout_s)
        if first is None:
            return []
        records = [_record(m) for m in (first, *self._consumer.consume(_ENOUGH, timeout=0))]
        self._read_to = records[-1].offset + 1
        return records

    def at_end(self) -> bool:
        """Whether everything that was there when this was opened has been read."""
        if self._read_to >= self._end:
            return True
        # Compaction may have removed the last records: then the position alone tells.
        return self._consumer.position([self._partition])[0].offset >= self._end

    def close(self) -> None:
        """Close the consumer."""
        self._consumer.close()


def _record(message: Message) -> PlanRecord:
    error = message.error()
    if error is not None:
        raise KafkaException(error)
    return PlanRecord(
        message.offset() or 0, message.key(), message.value(), tuple(message.headers() or ())
    )
