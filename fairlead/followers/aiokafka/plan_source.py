"""Read the plan topic with aiokafka.

Belongs here: finding the partition that contains a group's records, and reading it on a separate
event loop, so that the application's loop does not wait. Belongs elsewhere: the meaning of records
(`plan_cache`).
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import for_code

from fairlead.followers.core.plan_cache import PlanRecord
from fairlead.wire.partitions import partition_for_key
from fairlead.wire.record import Origin

#: Names of a consumer's connection settings.
CONNECTION: Final = frozenset(
    {
        "bootstrap_servers",
        "connections_max_idle_ms",
        "metadata_max_age_ms",
        "request_timeout_ms",
        "retry_backoff_ms",
        "sasl_kerberos_domain_name",
        "sasl_kerberos_service_name",
        "sasl_mechanism",
        "sasl_oauth_token_provider",
        "sasl_plain_password",
        "sasl_plain_username",
        "security_protocol",
        "ssl_context",
    }
)
_UNKNOWN_TOPIC: Final = 3
_FORBIDDEN_TOPIC: Final = 29


@dataclass(eq=False)
class AiokafkaSource:
    """The partition of the plan topic that contains a group's records, read from its beginning.

    Runs its own event loop on the calling thread.
    """

    _runner: asyncio.Runner
    _consumer: AIOKafkaConsumer
    _group: str
    _partition: TopicPartition
    _end: int
    origin: Origin

    @classmethod
    def open(cls, group: str, connection: Mapping[str, Any], topic: str) -> "AiokafkaSource | None":
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
        reach = {key: value for key, value in connection.items() if key in CONNECTION}
        reach["client_id"] = f"{connection.get('client_id', group)}-plans"
        runner = asyncio.Runner()
        try:
            count, cluster = runner.run(_describe(reach, topic))
            if count:
                number = partition_for_key(group, count)
                partition = TopicPartition(topic, number)
                consumer, end = runner.run(_start(reach, partition))
                origin = Origin(topic, cluster)  # the client does not know topic ids
                return cls(runner, consumer, group, partition, end, origin)
        except BaseException:
            runner.close()
            raise
        runner.close()
        return None

    def __str__(self) -> str:
        return f"{self._partition.topic}, partition {self._partition.partition}"

    def read(self, timeout_s: float) -> list[PlanRecord]:
        """Return the next records, waiting at most `timeout_s`."""
        batches = self._runner.run(self._consumer.getmany(timeout_ms=int(timeout_s * 1000)))
        return [
            PlanRecord(record.offset, record.key, record.value, tuple(record.headers))
            for record in batches.get(self._partition, ())
        ]

    def moved(self) -> bool:
        """Whether the group's key belongs to another partition, because partitions were added."""
        count = len(self._consumer.partitions_for_topic(self._partition.topic) or ())
        return count > 0 and partition_for_key(self._group, count) != self._partition.partition

    def at_end(self) -> bool:
        """Whether all records have been read that existed when the connection was opened."""
        position: int = self._runner.run(self._consumer.position(self._partition))
        return position >= self._end

    def close(self) -> None:
        """Close the consumer and its event loop."""
        try:
            self._runner.run(self._consumer.stop())
        finally:
            self._runner.close()


async def _describe(reach: dict[str, Any], topic: str) -> tuple[int, str]:
    """Return the number of partitions of the topic, and the cluster's id.

    Uses the admin client, because a consumer's request could create the topic.
    """
    admin = AIOKafkaAdminClient(**reach)
    try:
        await admin.start()
        (description,) = await admin.describe_topics([topic])
        cluster = (await admin.describe_cluster()).get("cluster_id") or ""
    finally:
        await admin.close()
    error: int = description["error_code"]
    if error in (_UNKNOWN_TOPIC, _FORBIDDEN_TOPIC):
        return 0, cluster
    if error:
        raise for_code(error)(topic)
    return len(description["partitions"]), cluster


async def _start(reach: dict[str, Any], partition: TopicPartition) -> tuple[AIOKafkaConsumer, int]:
    """Start a consumer of the partition; return the consumer and the partition's end offset."""
    consumer = AIOKafkaConsumer(
        **reach,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        fetch_max_wait_ms=5000,  # plans are rare, so few requests are enough
        isolation_level="read_committed",
    )
    try:
        await consumer.start()
        consumer.assign([partition])
        ends = await consumer.end_offsets([partition])
    except BaseException:
        await consumer.stop()
        raise
    return consumer, ends[partition]
