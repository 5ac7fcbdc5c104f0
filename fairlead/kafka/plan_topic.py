"""The plan topic: a compacted topic whose newest record under a group's id is the group's plan.

Belongs here: creating the topic, publishing to it, reading a group's newest record back. Does not:
what a plan's bytes mean (`fairlead.plans.document`), nor following plans in a consumer
(`fairlead.followers`).
"""

import time
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import UTC, datetime
from types import TracebackType
from typing import Final, NamedTuple, Self

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, ResourceType
from kafka.partitioner.default import murmur2

from fairlead.errors import ConfigurationError, KafkaUnavailableError
from fairlead.followers.partitions import kafka_uuid
from fairlead.kafka.answers import GRACE_S, TRANSIENT, kafka_error
from fairlead.plans.record import Headers, Origin
from fairlead.settings import KafkaSettings

LARGEST_PLAN_BYTES: Final = 8 * 1024 * 1024
"""Above the plan of a million partitions; a record's limit on the topic and in the producer."""

TOPIC_CONFIG: Final = {
    "cleanup.policy": "compact",
    # Followers read a partition from its beginning. Plans are told again every other hour, and what
    # was told before should be gone about then: twice the plans that hold is all there is to read.
    "min.cleanable.dirty.ratio": "0.1",
    "segment.ms": str(60 * 60 * 1000),
    "max.compaction.lag.ms": str(2 * 60 * 60 * 1000),
    "max.message.bytes": str(LARGEST_PLAN_BYTES),
}


class Position(NamedTuple):
    """Where a record stands in the plan topic."""

    partition: int
    offset: int


@dataclass(frozen=True)
class Record:
    """The newest record of a group.

    Parameters
    ----------
    group
        Its key.
    value
        The plan's bytes, or that it is retired; None: a tombstone, which nobody here sends.
    headers
        As published.
    position
        Where it stands.
    published_at
        The record's timestamp; time-zone-aware.
    """

    group: str
    value: bytes | None
    headers: Headers
    position: Position
    published_at: datetime


class PlanTopic:
    """Sends records and reads them back. A context manager; not for several threads.

    Parameters
    ----------
    settings
        How to reach the cluster, and the topic's name.
    """

    def __init__(self, settings: KafkaSettings) -> None:
        self._settings = settings
        self._timeout_s = settings.request_timeout_s
        self._producer: Producer | None = None
        self._origin: Origin | None = None

    @property
    def name(self) -> str:
        """The topic's name."""
        return self._settings.plan_topic

    @property
    def origin(self) -> Origin:
        """The topic, with the ids of the cluster and of the topic in it: asked for once.

        Raises
        ------
        ConfigurationError
            The topic does not exist.
        KafkaUnavailableError
            Brokers do not answer in time.
        """
        if self._origin is None:
            admin = AdminClient(self._settings.librdkafka())
            asked = admin.describe_topics(
                TopicCollection([self.name]), request_timeout=self._timeout_s
            )[self.name]
            try:
                log = kafka_uuid(str(asked.result(self._timeout_s + GRACE_S).topic_id))
                cluster = admin.list_topics(self.name, timeout=self._timeout_s).cluster_id
            except KafkaException as error:
                raise self._failure(error, "cannot be described") from error
            except TimeoutError as error:
                raise KafkaUnavailableError(f"Topic {self.name}: not described in time") from error
            self._origin = Origin(self.name, cluster, log)
        return self._origin

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._producer = None  # every publication was awaited: nothing is left to flush

    def ensure(self) -> None:
        """Create the topic unless it exists; check that it is compacted.

        Raises
        ------
        ConfigurationError
            The topic exists, but its cleanup policy would lose plans; or it may not be created.
        KafkaUnavailableError
            Brokers do not answer in time.
        """
        admin = AdminClient(self._settings.librdkafka())
        topic = NewTopic(
            self.name,
            num_partitions=self._settings.plan_topic_partitions,
            replication_factor=self._settings.plan_topic_replication_factor,
            config=TOPIC_CONFIG,
        )
        try:
            admin.create_topics(
                [topic], operation_timeout=self._timeout_s, request_timeout=self._timeout_s
            )[self.name].result(self._timeout_s + GRACE_S)
        except KafkaException as error:
            if kafka_error(error).code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise self._failure(error, "cannot be created") from error
            self._check_policy(admin)
        except TimeoutError as error:
            raise KafkaUnavailableError(f"Topic {self.name}: not created in time") from error

    def publish(self, group: str, value: bytes, headers: Headers) -> Position:
        """Send a group's record, and wait until every replica in sync has it.

        Sending the same bytes again is harmless: the record just stands there twice until
        compaction.

        Raises
        ------
        ConfigurationError
            The broker refuses the record, for its size for instance.
        KafkaUnavailableError
            The record was not acknowledged in time. It may have been written.
        """
        producer = self._open_producer()
        delivered: Future[Position] = Future()

        def on_delivery(error: KafkaError | None, message: Message) -> None:
            if error is not None:
                delivered.set_exception(KafkaException(error))
            else:
                delivered.set_result(Position(message.partition() or 0, message.offset() or 0))

        try:
            producer.produce(
                self.name, value, key=group.encode(), headers=list(headers), on_delivery=on_delivery
            )
            producer.flush(self._timeout_s + GRACE_S)
            return delivered.result(0)
        except KafkaException as error:
            raise self._failure(error, f"did not take the record of group {group}") from error
        except TimeoutError as error:
            raise KafkaUnavailableError(
                f"Topic {self.name} did not acknowledge the plan of group {group} in time"
            ) from error

    def read(self, group: str) -> Record | None:
        """Return the newest record of a group; None: there is none.

        Reads the one partition where the group's key lands, from its beginning to its end.

        Raises
        ------
        ConfigurationError
            The topic does not exist.
        KafkaUnavailableError
            Brokers do not answer in time.
        """
        consumer = Consumer(
            self._settings.librdkafka(
                **{
                    "group.id": "fairlead-plan-topic",  # required, never joined
                    "enable.auto.commit": "false",
                    "enable.partition.eof": "true",
                    "fetch.wait.max.ms": "50",
                }
            )
        )
        try:
            return self._newest(consumer, group)
        except KafkaException as error:
            raise self._failure(error, "cannot be read") from error
        finally:
            consumer.close()

    def _newest(self, consumer: Consumer, group: str) -> Record | None:
        key = group.encode()
        metadata = consumer.list_topics(self.name, timeout=self._timeout_s).topics[self.name]
        if metadata.error is not None:
            raise KafkaException(metadata.error)
        partition = TopicPartition(
            self.name, partition_of(key, len(metadata.partitions)), OFFSET_BEGINNING
        )
        consumer.assign([partition])
        newest: Message | None = None
        deadline = time.monotonic() + self._timeout_s
        while time.monotonic() < deadline:
            message = consumer.poll(0.1)
            if message is None:
                continue
            if (error := message.error()) is None:
                newest = message if message.key() == key else newest
            elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - librdkafka's name
                return _record(group, newest) if newest is not None else None
            else:
                raise KafkaException(error)
        raise KafkaUnavailableError(f"Topic {self.name} was not read to its end in time")

    def _open_producer(self) -> Producer:
        if self._producer is None:
            self._producer = Producer(
                self._settings.librdkafka(
                    **{
                        "enable.idempotence": "true",
                        "acks": "all",
                        # Kafka's default partitioner: followers look where it puts the key.
                        "partitioner": "murmur2_random",
                        "message.max.bytes": str(LARGEST_PLAN_BYTES),
                        "delivery.timeout.ms": str(int(self._timeout_s * 1000)),
                    }
                )
            )
        return self._producer

    def _check_policy(self, admin: AdminClient) -> None:
        resource = ConfigResource(ResourceType.TOPIC, self.name)
        try:
            config = admin.describe_configs([resource], request_timeout=self._timeout_s)[
                resource
            ].result(self._timeout_s + GRACE_S)
        except KafkaException as error:
            raise self._failure(error, "cannot be described") from error
        policy = config["cleanup.policy"].value
        if policy != "compact":
            raise ConfigurationError(
                f"Topic {self.name} has cleanup.policy={policy}, which would delete plans that are "
                "still followed. Change it: kafka-configs.sh --alter --entity-type topics "
                f"--entity-name {self.name} --add-config cleanup.policy=compact"
            )

    def _failure(self, error: KafkaException, what: str) -> Exception:
        carried = kafka_error(error)
        message = f"Topic {self.name} {what}: {carried.str()}"
        if carried.code() in TRANSIENT or carried.retriable():
            return KafkaUnavailableError(message)
        return ConfigurationError(message)


def partition_of(key: bytes, partitions: int) -> int:
    """Return where Kafka's default partitioner puts a key.

    Examples
    --------
    >>> partition_of(b"orders", 6)
    0
    """
    return int(murmur2(key) & 0x7FFFFFFF) % partitions


def _record(group: str, message: Message) -> Record:
    return Record(
        group=group,
        value=message.value(),
        headers=[(name, text or b"") for name, text in message.headers() or ()],
        position=Position(message.partition() or 0, message.offset() or 0),
        published_at=datetime.fromtimestamp(message.timestamp()[1] / 1000, UTC),
    )
