"""Read and write the records by which a group's members agree on an assignment.

Belongs here: requests to Kafka about the coordination topic, and sending and reading its records.
Belongs elsewhere: the content of records (`fairlead.wire.agreement`), their meaning
(`agreement_round`), and reconnecting (`log_listener`).

All records of a group are in one partition of the topic, because their key is the group id.
"""

import logging
import weakref
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from confluent_kafka import (  # type: ignore[attr-defined] # the type is newer than the stubs
    Consumer,
    ConsumerGroupType,
    IsolationLevel,
    KafkaError,
    KafkaException,
    Message,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, OffsetSpec, ResourceType

from fairlead.common.commands import alter_topic, shell_quote
from fairlead.common.librdkafka import kafka_error
from fairlead.errors import ConfigurationError
from fairlead.followers.confluent.clients import (
    Sender,
    answer_in_time,
    described_topic,
    forget,
    shared_client,
    topic_id,
)
from fairlead.followers.confluent.config import patience_of
from fairlead.wire.agreement import Record, decode, encode
from fairlead.wire.partitions import partition_for_key
from fairlead.wire.seals import Seal

log = logging.getLogger(__name__)

#: The topic is not compacted, because the first valid record with an assignment decides, and
#: compaction would keep only the last record. Members need a record for seconds; people and the
#: planner need the record for up to a day.
COORDINATION_TOPIC_CONFIG: Final = {
    "cleanup.policy": "delete",
    "retention.ms": str(24 * 60 * 60 * 1000),
    "compression.type": "gzip",  # how the broker stores records; every client can read gzip
}
COORDINATION_PARTITIONS: Final = 8
#: Maximum number of records per read.
_BATCH: Final = 1000
#: Errors after which a log cannot be used any more. The partition may have been truncated, or
#: deleted and created again, or this client may have lost the permission to read the topic.
_BROKEN: Final = frozenset(
    {
        KafkaError.OFFSET_OUT_OF_RANGE,
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.UNKNOWN_TOPIC_ID,  # type: ignore[attr-defined] # newer than the stubs
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError._AUTO_OFFSET_RESET,
        KafkaError._LOG_TRUNCATION,
        KafkaError._UNKNOWN_PARTITION,
        KafkaError._UNKNOWN_TOPIC,
    }
)
#: Errors after which a sent record is certainly not in the log. The client does not send the record
#: again.
_NOT_WRITTEN: Final = frozenset(
    {
        KafkaError.INVALID_MSG,
        KafkaError.INVALID_RECORD,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.MSG_SIZE_TOO_LARGE,
        KafkaError.NOT_ENOUGH_REPLICAS,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.POLICY_VIOLATION,
        KafkaError.RECORD_LIST_TOO_LARGE,
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError._PURGE_QUEUE,
        KafkaError._UNKNOWN_PARTITION,
        KafkaError._UNKNOWN_TOPIC,
    }
)


class Entry(NamedTuple):
    """A record of the coordination topic, and the leader epoch in which the record was written."""

    record: Record
    epoch: int = 0


@dataclass
class Sent:
    """Errors that the client reported for a sent record.

    Even without an error, the log may lack the record.

    Parameters
    ----------
    refused
        An error after which the record is certainly not in the log; None: no such error.
    doubtful
        An error after which the record may or may not be in the log; None: no such error.
    """

    refused: str | None = None
    doubtful: str | None = None

    def note(self, error: KafkaError) -> None:
        """Store the error from the client's delivery report."""
        if error.code() in _NOT_WRITTEN:
            self.refused = error.str()
        else:
            self.doubtful = error.str()


@dataclass(eq=False)
class AgreementLog:
    """One group's part of the coordination topic. Records from before the opening are ignored.

    Not thread-safe. `check`, `partition_count` and `broker_assigns` wait for a broker's response.
    """

    #: A consumer that only fetches records. Other requests use the producer or the admin client,
    #: because this consumer would send them only after its pending fetch.
    _tail: Consumer
    _producer: Sender
    _admin: AdminClient
    #: The partition with the group's records, and the offset at which to begin.
    _partition: TopicPartition
    _group: str
    #: The id that the cluster gave the topic.
    identity: str
    _seal: Seal
    #: Why this log cannot be used any more; None: this log can be used.
    broken: str | None = None

    def __post_init__(self) -> None:
        self._key, self._floor = self._group.encode(), self._partition.offset
        self._tail.assign([self._partition])

    def append(self, record: Record) -> Sent:
        """Send a record once, without waiting. Only `read` shows that the record has arrived."""
        sent, read_to, value = Sent(), self._floor, encode(record)
        this = weakref.ref(self)  # weak, because the producer would otherwise keep this log alive

        def delivered(error: KafkaError | None, message: Message) -> None:
            offset = message.offset()
            if error is not None:
                sent.note(error)
            elif offset is not None and 0 <= offset < read_to and (its := this()) is not None:
                its.broken = f"the topic was created again: offset {offset} follows {read_to - 1}"

        try:
            self._producer.produce(
                self._partition.topic,
                value,
                key=self._key,
                headers=self._seal.headers(value),
                partition=self._partition.partition,
                on_delivery=delivered,
            )
            self._producer.poll(0)
        except KafkaException as error:
            sent.note(kafka_error(error))
        except BufferError as error:
            sent.refused = str(error)
        return sent

    def read(self, timeout_s: float) -> list[Entry]:
        """Return the group's next records, waiting at most `timeout_s`."""
        self._producer.poll(0)
        entries = []
        # Without poll(), consume() would wait for the whole time-out even if there are records.
        first = self._tail.poll(timeout_s)
        messages = [] if first is None else [first, *self._tail.consume(_BATCH, 0.002)]
        for message in messages:
            if (error := message.error()) is not None:
                if error.code() in _BROKEN:
                    self.broken = error.str()
                continue
            offset, epoch = message.offset() or 0, message.leader_epoch() or 0
            if offset < self._floor or message.key() != self._key:
                continue
            self._floor = offset + 1
            value = message.value()
            if not self._seal.holds(value, message.headers()):
                log.debug("Ignored a record of the coordination topic without the group's seal")
            elif (record := decode(value)) is not None:
                entries.append(Entry(record, epoch))
        return entries

    def check(self, timeout_s: float) -> None:
        """Set `broken` if the topic was replaced, or the group belongs to another partition now."""
        topic = self._partition.topic
        try:
            described = described_topic(self._admin, topic, timeout_s)
        except KafkaException as error:
            log.debug("Cannot describe the coordination topic %s: %s", topic, error)
            return
        count, now = len(described.partitions), topic_id(described)
        if partition_for_key(self._group, count) != self._partition.partition:
            self.broken = (
                f"the topic has grown to {count} partitions, and the group's partition has changed"
            )
        elif now != self.identity:
            self.broken = f"the topic was created again: its id is {now}, and was {self.identity}"

    def partition_count(self, topic: str, timeout_s: float) -> int | None:
        """Return the number of partitions of a topic; None: unknown."""
        try:
            metadata = self._producer.list_topics(topic, timeout=timeout_s).topics[topic]
        except KafkaException:
            return None
        return None if metadata.error is not None else len(metadata.partitions)

    def broker_assigns(self, timeout_s: float) -> bool:
        """Return whether the group uses the consumer protocol (KIP-848).

        Returns False if no broker responds, or if the broker is too old to have such groups.
        """
        listing = self._admin.list_consumer_groups(
            types={ConsumerGroupType.CONSUMER},  # type: ignore[call-arg] # as above
            request_timeout=timeout_s,
        )
        try:
            groups = answer_in_time(listing, timeout_s).valid
        except KafkaException as error:
            log.debug("Cannot read the type of group %s: %s", self._group, error)
            return False
        return any(listed.group_id == self._group for listed in groups)

    def close(self) -> None:
        """Close the consumer. If `broken` is set, stop sharing the producer and admin client."""
        self._producer.poll(0)
        if self.broken is not None:
            forget(self._producer)
            forget(self._admin)
        self._tail.close()


@dataclass(frozen=True, repr=False)  # its repr would contain secrets
class KafkaCoordinationTopic:
    """The coordination topic of a cluster, and one group's settings for this topic.

    Parameters
    ----------
    group
        The group id.
    connection
        librdkafka's connection settings.
    name
        The topic's name.
    secrets
        Secrets for seals, as returned by `seals.read_secrets`; empty: records have no seal.
    """

    group: str
    connection: Mapping[str, Any]
    name: str
    secrets: tuple[bytes, ...] = ()

    def open(self, timeout_s: float) -> AgreementLog:
        """Return the group's part of the topic, positioned at the end; makes two requests.

        Raises
        ------
        KafkaException
            The topic is missing, or no broker answers in time.
        """
        tail = Consumer(
            {
                **self.connection,
                "group.id": self.group,  # required, but never joined; members have READ permission
                "enable.auto.commit": False,
                "auto.offset.reset": "error",
                "fetch.wait.max.ms": patience_of(self.connection),
                "fetch.error.backoff.ms": 50,
                # Fetch only when the queue is empty. One fetch then returns many announcements.
                "queued.min.messages": 1,
                "fetch.queue.backoff.ms": 5,
                "reconnect.backoff.max.ms": 1000,
            }
        )
        try:
            admin = shared_client(AdminClient, self.connection)
            described = described_topic(admin, self.name, timeout_s)
            number = partition_for_key(self.group, len(described.partitions))
            partition = TopicPartition(self.name, number)
            latest = admin.list_offsets(
                {partition: OffsetSpec.latest()},
                isolation_level=IsolationLevel.READ_UNCOMMITTED,
                request_timeout=timeout_s,
            )[partition]
            end: Any = answer_in_time(latest, timeout_s)
            log_id = topic_id(described)
            return AgreementLog(
                tail,
                shared_client(Sender, self.connection),
                admin,
                TopicPartition(self.name, number, end.offset),
                self.group,
                log_id,
                Seal(self.group, log_id, self.secrets),
            )
        except BaseException:
            tail.close()
            raise

    def check(self, timeout_s: float) -> None:
        """Raise a ConfigurationError if the topic is compacted; ignore unreadable settings."""
        resource = ConfigResource(ResourceType.TOPIC, self.name)
        admin = shared_client(AdminClient, self.connection)  # must live until the response arrives
        described = admin.describe_configs([resource], request_timeout=timeout_s)
        try:
            settings = answer_in_time(described[resource], timeout_s)
        except KafkaException as error:
            if kafka_error(error).code() != KafkaError.TOPIC_AUTHORIZATION_FAILED:
                raise
            log.debug("Cannot read the settings of coordination topic %s: %s", self.name, error)
            return
        policy = settings["cleanup.policy"].value or ""
        if "compact" in policy:
            raise ConfigurationError(
                f"The coordination topic {self.name} has cleanup.policy={policy}: "
                "compaction would remove assignment records. Change it: "
                + alter_topic(self.name, "cleanup.policy=delete")
            )

    def create(self, timeout_s: float) -> None:
        """Create the topic unless it exists.

        Raises
        ------
        ConfigurationError
            The broker does not permit this client to create the topic.
        KafkaException
            No broker answers in time.
        """
        timeout_s *= 2
        new = NewTopic(
            self.name, COORDINATION_PARTITIONS, config=COORDINATION_TOPIC_CONFIG
        )  # with the broker's default number of replicas
        admin = shared_client(AdminClient, self.connection)  # must live until the response arrives
        created = admin.create_topics([new], request_timeout=timeout_s)
        try:
            answer_in_time(created[self.name], timeout_s)
        except KafkaException as error:
            code = kafka_error(error).code()
            if code == KafkaError.TOPIC_AUTHORIZATION_FAILED:
                config = " ".join(
                    f"--config {key}={value}" for key, value in COORDINATION_TOPIC_CONFIG.items()
                )
                raise ConfigurationError(
                    f"The coordination topic {self.name} does not exist, and this client "
                    f"may not create it. Create it: kafka-topics.sh --create "
                    f"--topic {shell_quote(self.name)} "
                    f"--partitions {COORDINATION_PARTITIONS} {config}"
                ) from error
            if code != KafkaError.TOPIC_ALREADY_EXISTS:
                raise
