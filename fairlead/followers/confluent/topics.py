"""What followers with confluent-kafka ask of a cluster about their topics.

Belongs here: whom to ask, the pin topic's settings, a topic's id, size and end. Does not: reading
(`tail`) or writing a topic (`pin_log`).
"""

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from confluent_kafka import (
    IsolationLevel,
    KafkaError,
    KafkaException,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import (
    AdminClient,
    ConfigResource,
    NewTopic,
    OffsetSpec,
    ResourceType,
    TopicMetadata,
)

from fairlead.errors import ConfigurationError
from fairlead.wire.partitions import kafka_uuid

log = logging.getLogger(__name__)

#: Append only: compaction would remove the record that decides. A day's retention is long: a record
#: matters for seconds.
PIN_TOPIC_CONFIG: Final = {
    "cleanup.policy": "delete",
    "retention.ms": str(24 * 60 * 60 * 1000),
}
PIN_PARTITIONS: Final = 8


class Cluster:
    """What one follower's parts ask the cluster through, beside what they read. For any thread.

    On a consumer a request would wait behind the consumer's own fetches.

    Parameters
    ----------
    connection
        librdkafka's settings of how to reach the cluster.
    """

    def __init__(self, connection: Mapping[str, Any]) -> None:
        self.connection = dict(connection)
        self._admin: AdminClient | None = None

    @contextmanager
    def asking(self) -> Iterator[AdminClient]:
        """Yield the client to ask with; where that fails, the next request is another client's.

        After a broker's restart a client may never be answered again.
        """
        admin = self._admin
        if admin is None:
            admin = AdminClient({**self.connection, "reconnect.backoff.max.ms": 1000})
            self._admin = admin
        try:
            yield admin
        except (KafkaException, TimeoutError) as error:
            self._admin = None
            if isinstance(error, KafkaException):
                raise
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT)) from error  # noqa: SLF001

    def topic_id(self, topic: str, timeout_s: float) -> str:
        """Ask for the id that the cluster gave a topic; "" where it gives none.

        Raises
        ------
        KafkaException
            No broker answers in time: what is not known now must not pass for unknown to all.
        """
        try:
            with self.asking() as admin:
                asked = admin.describe_topics(TopicCollection([topic]), request_timeout=timeout_s)
                return kafka_uuid(str(asked[topic].result(timeout_s + 1).topic_id))
        except KafkaException as error:
            if cause_of(error).code() == KafkaError._UNSUPPORTED_FEATURE:  # noqa: SLF001
                return ""
            raise

    def offset(self, topic: str, partition: int, spec: OffsetSpec, timeout_s: float) -> int:
        """Ask where a partition begins or ends, with transactions that are under way.

        Raises
        ------
        KafkaException
            No broker answers in time.
        """
        with self.asking() as admin:
            asked = admin.list_offsets(
                {TopicPartition(topic, partition): spec},
                isolation_level=IsolationLevel.READ_UNCOMMITTED,
                request_timeout=timeout_s,
            )
            (answer,) = asked.values()
            found: Any = answer.result(timeout_s + 1)  # the stubs do not know its offset
            return int(found.offset)

    def metadata(self, topic: str, timeout_s: float) -> tuple[str, TopicMetadata]:
        """Ask for the cluster's id, and for a topic's partitions or what is wrong with it.

        Raises
        ------
        KafkaException
            No broker answers in time.
        """
        with self.asking() as admin:
            metadata = admin.list_topics(topic, timeout=timeout_s)
        return metadata.cluster_id or "", metadata.topics[topic]


def create_pin_topic(cluster: Cluster, topic: str, *, timeout_s: float = 10.0) -> None:
    """Create the pin topic unless it exists.

    Raises
    ------
    ConfigurationError
        It may not be created.
    KafkaException
        No broker answers in time.
    """
    new = NewTopic(topic, PIN_PARTITIONS, config=PIN_TOPIC_CONFIG)  # replicas: the brokers' default
    try:
        with cluster.asking() as admin:
            admin.create_topics([new], request_timeout=timeout_s)[topic].result(timeout_s + 1)
    except KafkaException as error:
        code = cause_of(error).code()
        if code == KafkaError.TOPIC_AUTHORIZATION_FAILED:
            raise ConfigurationError(
                f"The pin topic {topic} does not exist and may not be created. Create it: "
                f"kafka-topics.sh --create --topic {topic} --partitions {PIN_PARTITIONS} "
                "--config cleanup.policy=delete --config retention.ms=86400000"
            ) from error
        if code != KafkaError.TOPIC_ALREADY_EXISTS:
            raise


def check_pin_topic(cluster: Cluster, topic: str, *, timeout_s: float = 10.0) -> None:
    """Check that the pin topic is not compacted, where its settings may be read.

    Raises
    ------
    ConfigurationError
        It is compacted.
    """
    resource = ConfigResource(ResourceType.TOPIC, topic)
    try:
        with cluster.asking() as admin:
            asked = admin.describe_configs([resource], request_timeout=timeout_s)
            config = asked[resource].result(timeout_s + 1)
    except KafkaException as error:
        log.debug("The settings of pin topic %s cannot be read: %s", topic, error)
        return
    if "compact" in (config["cleanup.policy"].value or ""):
        raise ConfigurationError(
            f"The pin topic {topic} has cleanup.policy={config['cleanup.policy'].value}: "
            "compaction would remove the record that decides. Change it: kafka-configs.sh --alter "
            f"--entity-type topics --entity-name {topic} --add-config cleanup.policy=delete"
        )


def cause_of(error: KafkaException) -> KafkaError:
    """Return what an exception of the client carries."""
    cause = error.args[0]
    return cause if isinstance(cause, KafkaError) else KafkaError(KafkaError.UNKNOWN, str(cause))
