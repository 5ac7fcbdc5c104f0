"""Read the plan topic with confluent-kafka.

Belongs here: finding and fetching the one partition that holds a group's key. Does not: what a
record means (`plan_cache`).
"""

import logging
from collections.abc import Mapping
from typing import Any, Final

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    TopicPartition,
)

from fairlead.followers.confluent.topics import TopicIdRequest
from fairlead.followers.core.plan_cache import PlanRecord
from fairlead.wire.partitions import partition_for_key
from fairlead.wire.record import Origin

log = logging.getLogger(__name__)

_TIMEOUT_S: Final = 5.0
_ENOUGH: Final = 100


class ConfluentSource:
    """The plan topic's partition that holds a group's key, read from its beginning."""

    def __init__(
        self,
        consumer: Consumer,
        group: str,
        partition: TopicPartition,
        origin: Origin,
        connection: Mapping[str, Any],
    ) -> None:
        self._consumer = consumer
        self._connection = connection
        self._group = group
        self._partition = partition
        self._ended = False
        self.origin = origin
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
                "group.id": group,  # required, never joined: the one that the consumer may read
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "isolation.level": "read_committed",
                "enable.partition.eof": True,  # the last stable offset, whatever stands before it
            }
        )
        try:
            metadata = consumer.list_topics(topic, timeout=_TIMEOUT_S)
            found = metadata.topics[topic]
            if found.error is None:
                number = partition_for_key(group, len(found.partitions))
                origin = Origin(topic, metadata.cluster_id or "", _topic_id(connection, topic))
                partition = TopicPartition(topic, number)
                return cls(consumer, group, partition, origin, connection)
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
        # poll() would wake up five times a second, to look after signals.
        messages = self._consumer.consume(1, timeout_s)
        if messages:
            messages += self._consumer.consume(_ENOUGH, 0)
        return [record for record in map(self._record, messages) if record is not None]

    def moved(self) -> bool:
        """Whether the group's key lands in another partition by now, or in another topic's.

        librdkafka goes on from the offset that it had in the topic before, and says nothing.
        """
        topic = self._partition.topic
        found = self._consumer.list_topics(topic, timeout=_TIMEOUT_S).topics[topic]
        if found.error is not None:
            return False
        if partition_for_key(self._group, len(found.partitions)) != self._partition.partition:
            return True
        log_now = _topic_id(self._connection, topic)
        return bool(log_now) and log_now != self.origin.log

    def at_end(self) -> bool:
        """Whether everything that was there when this was opened has been read."""
        return self._ended

    def close(self) -> None:
        """Close the consumer."""
        self._consumer.close()

    def _record(self, message: Message) -> PlanRecord | None:
        error = message.error()
        if error is None:
            return PlanRecord(
                message.offset() or 0,
                message.key(),
                message.value(),
                tuple(message.headers() or ()),
            )
        if error.code() != KafkaError._PARTITION_EOF:  # noqa: SLF001 - librdkafka's name
            raise KafkaException(error)
        self._ended = True
        return None


def _topic_id(connection: Mapping[str, Any], topic: str) -> str:
    """Ask for the id that the cluster gave a topic; "": it does not tell."""
    try:
        return TopicIdRequest(connection, topic, _TIMEOUT_S).answer()
    except KafkaException as error:
        log.debug("The id of topic %s is not known: %s", topic, error)
        return ""
