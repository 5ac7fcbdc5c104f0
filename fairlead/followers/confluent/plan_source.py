"""Read the plan topic with confluent-kafka.

Belongs here: finding and reading the partition that contains a group's records. Belongs elsewhere:
the meaning of records (`plan_cache`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    KafkaException,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient

from fairlead.followers.confluent.clients import (
    described_topic,
    key_of,
    shared,
    shared_client,
    topic_id,
)
from fairlead.followers.core.follower import FollowOptions
from fairlead.followers.core.plan_cache import PlanRecord
from fairlead.followers.core.plan_reader import PlanReader
from fairlead.wire.partitions import partition_for_key
from fairlead.wire.record import Origin

_TIMEOUT_S: Final = 5.0
#: Maximum number of records per read.
_BATCH: Final = 100
#: Seconds. Longest wait of the reader's thread for a record.
_READ_S: Final = 1.0


@dataclass(eq=False)
class ConfluentSource:
    """The partition of the plan topic that contains a group's records, read from its beginning."""

    _consumer: Consumer
    _group: str
    _partition: TopicPartition
    origin: Origin
    #: Sends requests about the topic. The consumer would send them only after its pending fetch.
    _admin: AdminClient
    _ended: bool = False

    @classmethod
    def open(
        cls, group: str, connection: Mapping[str, Any], topic: str
    ) -> "ConfluentSource | None":
        """Connect; return None if the topic does not exist, or this client has no read permission.

        Parameters
        ----------
        group
            The group id.
        connection
            librdkafka's connection settings.
        topic
            The plan topic.
        """
        consumer = Consumer(
            {
                **connection,
                "group.id": group,  # required, but never joined; members have READ permission
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "isolation.level": "read_committed",
                "enable.partition.eof": True,  # reports when the last stable offset is reached
            }
        )
        try:
            metadata = consumer.list_topics(topic, timeout=_TIMEOUT_S)
            described = metadata.topics[topic]
            if described.error is None:
                number = partition_for_key(group, len(described.partitions))
                admin = shared_client(AdminClient, connection)
                log_id = topic_id(described_topic(admin, topic, _TIMEOUT_S))
                origin = Origin(topic, metadata.cluster_id or "", log_id)
                partition = TopicPartition(topic, number, OFFSET_BEGINNING)
                consumer.assign([partition])
                return cls(consumer, group, partition, origin, admin)
        except BaseException:
            consumer.close()
            raise
        consumer.close()
        return None

    def __str__(self) -> str:
        return f"{self._partition.topic}, partition {self._partition.partition}"

    def read(self, timeout_s: float) -> list[PlanRecord]:
        """Return the next records, waiting at most `timeout_s` for the first.

        Raises
        ------
        KafkaException
            The topic does not exist any more, or this client has no read permission.
        """
        # Not poll(), which would wake up five times a second to check for signals.
        messages = self._consumer.consume(1, timeout_s)
        if messages:
            messages += self._consumer.consume(_BATCH, 0)
        records = []
        for message in messages:
            error = message.error()
            if error is None:
                headers = tuple(message.headers() or ())
                offset = message.offset() or 0
                records.append(PlanRecord(offset, message.key(), message.value(), headers))
            elif error.code() == KafkaError._PARTITION_EOF:
                self._ended = True
            else:
                raise KafkaException(error)
        return records

    def moved(self) -> bool:
        """Whether the topic was replaced, or the group belongs to another partition now.

        If a topic is deleted and created again, librdkafka continues at the old offset without an
        error.
        """
        try:
            described = described_topic(self._admin, self._partition.topic, _TIMEOUT_S)
        except KafkaException:
            return False
        number = partition_for_key(self._group, len(described.partitions))
        return (number, topic_id(described)) != (self._partition.partition, self.origin.log)

    def at_end(self) -> bool:
        """Whether all records have been read that existed when the connection was opened."""
        return self._ended

    def close(self) -> None:
        """Close the consumer."""
        self._consumer.close()


def shared_reader(group: str, connection: Mapping[str, Any], options: FollowOptions) -> PlanReader:
    """Return a started reader of a group's plans, shared by the plan followers of one process.

    Parameters
    ----------
    group
        The group id.
    connection
        librdkafka's connection settings.
    options
        How to follow plans.
    """
    key = (PlanReader, group, key_of(connection), options)
    reader: PlanReader | None = shared.get(key)
    while reader is None or not reader.serve():
        reader = shared[key] = PlanReader(
            group,
            open_source=partial(ConfluentSource.open, group, connection, options.plan_topic),
            verifier=options.verifier(),
            on_tick=lambda: None,
            read_s=_READ_S,
        )
    return reader
