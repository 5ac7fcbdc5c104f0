"""Read the plan topic with kafka-python.

Belongs here: finding and reading the partition that contains a group's records. Belongs elsewhere:
the meaning of records (`plan_cache`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from kafka import KafkaAdminClient, KafkaConsumer, TopicPartition

from fairlead.common.kafka_python import connect
from fairlead.followers.core.plan_cache import PlanRecord
from fairlead.wire.partitions import kafka_uuid, partition_for_key
from fairlead.wire.record import Origin

#: Names of a consumer's connection settings.
_CONNECTION: Final = {
    *KafkaAdminClient.DEFAULT_CONFIG,
    *("ssl_ciphers", "client_rack", "enable_incremental_fetch_sessions"),
} - {"metric_reporters"}


@dataclass(eq=False)
class KafkaPythonSource:
    """The partition of the plan topic that contains a group's records, read from its beginning."""

    _consumer: KafkaConsumer
    _group: str
    _partition: TopicPartition
    _end: int
    origin: Origin

    @classmethod
    def open(
        cls, group: str, connection: Mapping[str, Any], topic: str
    ) -> "KafkaPythonSource | None":
        """Connect; return None if the topic does not exist, or this client has no read permission.

        Parameters
        ----------
        group
            The group id.
        connection
            A consumer's configuration; only its connection settings are used.
        topic
            The plan topic.
        """
        consumer = connect(
            KafkaConsumer,
            {
                **{key: value for key, value in connection.items() if key in _CONNECTION},
                "client_id": f"{connection.get('client_id', group)}-plans",
                "allow_auto_create_topics": False,
                "auto_offset_reset": "earliest",
                "enable_auto_commit": False,
                "fetch_max_wait_ms": 5000,  # plans are rare, so few requests are enough
                "isolation_level": "read_committed",
            },
        )
        try:
            count = len(consumer.partitions_for_topic(topic))
            if count:
                number = partition_for_key(group, count)
                partition, origin = TopicPartition(topic, number), _origin(consumer, topic)
                consumer.assign([partition])
                end = consumer.end_offsets([partition])[partition]
                return cls(consumer, group, partition, end, origin)
        except BaseException:
            consumer.close()
            raise
        consumer.close()
        return None

    def __str__(self) -> str:
        return f"{self._partition.topic}, partition {self._partition.partition}"

    def read(self, timeout_s: float) -> list[PlanRecord]:
        """Return the next records, waiting at most `timeout_s`.

        Raises
        ------
        ConnectionError
            The topic was created again. The old offsets are not valid in the new topic, but the
            client would continue with them.
        """
        log = _origin(self._consumer, self._partition.topic).log
        if log and log != self.origin.log:
            raise ConnectionError(f"{self._partition.topic} was created again")
        batches = self._consumer.poll(timeout_ms=int(timeout_s * 1000))
        return [
            PlanRecord(record.offset, record.key, record.value, tuple(record.headers))
            for record in batches.get(self._partition, ())
        ]

    def moved(self) -> bool:
        """Whether the group's key belongs to another partition, because partitions were added."""
        self._consumer._cluster.request_update()  # noqa: SLF001 - requests metadata for the next check
        count = len(self._consumer.partitions_for_topic(self._partition.topic))
        return count > 0 and partition_for_key(self._group, count) != self._partition.partition

    def at_end(self) -> bool:
        """Whether all records have been read that existed when the connection was opened."""
        position = self._consumer.position(self._partition, timeout_ms=1000)
        return position is not None and position >= self._end

    def close(self) -> None:
        """Close the consumer."""
        self._consumer.close()


def _origin(consumer: KafkaConsumer, topic: str) -> Origin:
    """Return the topic's origin, with ids from private attributes of the client."""
    cluster = consumer._cluster  # noqa: SLF001 - as above
    log = cluster.topic_id(topic)
    return Origin(topic, cluster.cluster_id or "", kafka_uuid(log.bytes) if log else "")
