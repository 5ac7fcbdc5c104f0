"""A compacted topic: a group's state is in the newest record whose key is the group's id.

Belongs here: creating such a topic, and reading a group's newest record. Belongs elsewhere: the
content of records (`fairlead.wire`), and writing them (`plan_topic`, `members_topic`).
"""

import logging
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple, Self, TypeVar

from confluent_kafka import (
    KafkaError,
    KafkaException,
    Message,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import (
    AdminClient,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
    TopicDescription,
)

from fairlead.common.commands import alter_topic
from fairlead.common.librdkafka import kafka_error
from fairlead.errors import ConfigurationError, KafkaUnavailableError
from fairlead.kafka.copies import copies_wanted, in_sync_wanted, too_few
from fairlead.kafka.plan_channel import LARGEST_PLAN_BYTES
from fairlead.kafka.reachability import require_broker
from fairlead.kafka.refusals import raise_if_refused
from fairlead.kafka.requests import GRACE_S, TRANSIENT, read_to_end, reader
from fairlead.settings import KafkaSettings
from fairlead.wire.partitions import kafka_uuid, partition_for_key
from fairlead.wire.record import Headers, Origin

log = logging.getLogger(__name__)

Answer = TypeVar("Answer")
#: Seconds between two requests while waiting for a change of a topic.
POLL_S: Final = 0.1

TOPIC_CONFIG: Final = {
    "cleanup.policy": "compact",
    # Consumers that follow plans read a partition from its beginning. Each plan is sent again every
    # two hours, to renew its lease. By then, older records of the plan should be compacted, so that
    # a consumer reads only about two records of each plan.
    "min.cleanable.dirty.ratio": "0.1",
    "segment.ms": str(60 * 60 * 1000),
    "max.compaction.lag.ms": str(2 * 60 * 60 * 1000),
    "max.message.bytes": str(LARGEST_PLAN_BYTES),
    # Brokers decompress the records of producers that compress. So consumers need no codec, and the
    # maximum size above limits the memory that a consumer needs for a record.
    "compression.type": "uncompressed",
}
#: Values of compression.type with which every client can read every record.
_READABLE: Final = frozenset({"uncompressed", "gzip"})


def foreign_codecs(compression: str) -> str:
    """Return a warning if a topic's compression.type allows codecs that some clients lack.

    Returns "" otherwise.

    Examples
    --------
    >>> foreign_codecs("zstd"), foreign_codecs("gzip")
    ('has compression.type=zstd: a record in zstd stops clients without that codec', '')
    """
    if compression in _READABLE:
        return ""
    which = "lz4, snappy or zstd" if compression == "producer" else compression
    return (
        f"has compression.type={compression}: a record in {which} stops clients without that codec"
    )


class Position(NamedTuple):
    """Position of a record in the topic."""

    partition: int
    offset: int


@dataclass(frozen=True)
class Record:
    """The newest record of a group.

    Parameters
    ----------
    group
        The record's key.
    value
        The record's bytes, such as a plan. None: a tombstone, which Fairlead never writes.
    headers
        The record's headers.
    position
        Partition and offset.
    published_at
        The record's timestamp; time-zone-aware.
    began
        Offset of the oldest record in the topic that has the same group and epoch.
    tombstone
        Offset of the group's last tombstone in the topic before this record; -1: none.
    """

    group: str
    value: bytes | None
    headers: Headers
    position: Position
    published_at: datetime
    began: int = 0
    tombstone: int = -1


class CompactedTopic:
    """Creates a topic and reads its records. Use it as a context manager, in one thread.

    Parameters
    ----------
    settings
        How to reach the cluster, and the topic's replication factor.
    name
        The topic.
    partitions
        Number of partitions if the topic is created.
    """

    def __init__(self, settings: KafkaSettings, name: str, *, partitions: int) -> None:
        self.name = name
        self._settings = settings
        self._partitions = partitions
        self._timeout_s = settings.request_timeout_s
        self._count: int | None = None
        self._origin: Origin | None = None

    @property
    def origin(self) -> Origin:
        """The topic's name and the ids of cluster and topic, which are read only once.

        Raises
        ------
        ConfigurationError
            The topic does not exist.
        KafkaUnavailableError
            Brokers do not answer in time.
        """
        if self._origin is None:
            topic_id = kafka_uuid(str(self._describe().topic_id))
            self._origin = Origin(self.name, self._cluster().cluster_id or "", topic_id)
        return self._origin

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        """If brokers did not answer, raise an error with the reason, such as a failed login."""
        raise_if_refused(error, self._settings)

    def ensure(self) -> None:
        """Create the topic, or check that an existing topic is compacted and replicated.

        Raises
        ------
        ConfigurationError
            The existing topic's cleanup policy would delete records, or its min.insync.replicas
            exceeds its number of replicas. Or the user has no right to create the topic.
        KafkaUnavailableError
            Brokers do not answer in time.
        """
        brokers = len(self._cluster().nodes)
        factor = self._settings.plan_topic_replication_factor
        copies = copies_wanted(brokers) if factor < 0 else factor
        topic = NewTopic(
            self.name,
            num_partitions=self._partitions,
            replication_factor=copies,
            config=TOPIC_CONFIG | {"min.insync.replicas": str(in_sync_wanted(copies))},
        )
        admin = AdminClient(self._settings.librdkafka())
        try:
            admin.create_topics(
                [topic], operation_timeout=self._timeout_s, request_timeout=self._timeout_s
            )[self.name].result(self._timeout_s + GRACE_S)
            self._describe(within_s=self._timeout_s)
        except KafkaException as error:
            if kafka_error(error).code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise self._failure(error, "cannot be created") from error
            self._check(brokers)
        except TimeoutError as error:
            raise KafkaUnavailableError(f"Topic {self.name}: not created in time") from error

    def codec_warning(self, config: dict[str, ConfigEntry] | None = None) -> str:
        """Return a warning and a remedy if clients may lack the codec of a record; "" if not.

        Raises
        ------
        ConfigurationError
            The topic does not exist, or the user has no right to describe it.
        KafkaUnavailableError
            Brokers do not answer in time.
        """
        config = self._config() if config is None else config
        if not (why := foreign_codecs(config["compression.type"].value)):
            return ""
        change = alter_topic(self.name, "compression.type=uncompressed")
        return f"Topic {self.name} {why}. Change it: {change}"

    def partition_for_key(self, group: str) -> int:
        """Return the partition for a group's records; reads the number of partitions only once.

        Raises
        ------
        ConfigurationError
            The topic does not exist.
        KafkaUnavailableError
            Brokers do not answer in time.
        """
        if self._count is None:
            self._count = len(self._describe().partitions)
        return partition_for_key(group, self._count)

    def newest(
        self, partition: int, groups: Iterable[str], only: Callable[[Record], bool] | None = None
    ) -> dict[str, Record]:
        """Return the newest committed record of each group; leave out groups without a record.

        Parameters
        ----------
        partition, groups
            A partition, and groups whose records are in this partition.
        only
            Function that returns whether to consider a record; None: consider all records.

        Raises
        ------
        ConfigurationError
            The topic does not exist.
        KafkaUnavailableError
            Brokers do not answer in time.
        """
        keys = {group.encode(): group for group in groups}
        newest: dict[str, Record] = {}
        began: dict[tuple[str, bytes], int] = {}
        tombstones: dict[str, int] = {}
        for message in self._read(partition):
            group = keys.get(message.key() or b"")
            if group is None:
                continue
            record = _record(group, message)
            offset = record.position.offset
            if record.value is None:
                tombstones[group] = offset
            else:
                epoch = dict(record.headers).get("epoch", b"")
                record = replace(record, began=began.setdefault((group, epoch), offset))
            record = replace(record, tombstone=tombstones.get(group, -1))
            if only is None or only(record):
                newest[group] = record
        return newest

    def read(self, group: str) -> Record | None:
        """Return the newest record of a group, or None; raises the errors of `newest`."""
        return self.newest(self.partition_for_key(group), [group]).get(group)

    def _read(self, partition: int) -> Iterator[Message]:
        """Read a partition from its beginning to its last stable offset."""
        consumer = reader(self._settings, **{"isolation.level": "read_committed"})
        # 0, because OFFSET_BEGINNING would cost librdkafka a request and half a second.
        begin = TopicPartition(self.name, partition, 0)
        try:
            yield from read_to_end(consumer, [begin], self._timeout_s)
        except KafkaException as error:
            raise self._failure(error, "cannot be read") from error
        finally:
            consumer.close()

    def _cluster(self) -> Any:
        """Describe the cluster; raises the errors of `_ask`."""

        def describe(admin: Any) -> Any:  # the stubs' types are wrong
            return admin.describe_cluster(request_timeout=self._timeout_s)

        return self._ask(describe)

    def _describe(self, *, within_s: float = 0.0) -> TopicDescription:
        """Read the topic's id and partitions; raises the errors of `_ask`."""
        topics = TopicCollection([self.name])
        return self._ask(
            lambda admin: admin.describe_topics(topics, request_timeout=self._timeout_s)[self.name],
            within_s=within_s,
        )

    def _config(self) -> dict[str, ConfigEntry]:
        """Read the configuration of an existing topic; raises the errors of `_ask`."""
        topic = ConfigResource(ResourceType.TOPIC, self.name)
        return self._ask(
            lambda admin: admin.describe_configs([topic], request_timeout=self._timeout_s)[topic],
            within_s=self._timeout_s,
        )

    def _ask(
        self, question: Callable[[AdminClient], Future[Answer]], *, within_s: float = 0.0
    ) -> Answer:
        """Send a request about the topic.

        While the broker does not know the topic, retry for `within_s` seconds: brokers learn of a
        new topic with a delay.

        Raises
        ------
        ConfigurationError
            The topic does not exist, or the user has no right to describe it.
        KafkaUnavailableError
            Brokers do not answer in time.
        """
        require_broker(self._settings)
        admin = AdminClient(self._settings.librdkafka())  # must live until the answer arrives
        deadline = time.monotonic() + within_s
        while True:
            try:
                return question(admin).result(self._timeout_s + GRACE_S)
            except KafkaException as error:
                unknown = kafka_error(error).code() == KafkaError.UNKNOWN_TOPIC_OR_PART
                if not unknown or time.monotonic() >= deadline:
                    raise self._failure(error, "cannot be described") from error
            except TimeoutError as error:
                raise KafkaUnavailableError(f"Topic {self.name}: no answer in time") from error
            time.sleep(POLL_S)

    def _check(self, brokers: int) -> None:
        """Raise an error if an existing topic could lose records."""
        config = self._config()
        policy = config["cleanup.policy"].value
        if policy != "compact":
            raise ConfigurationError(
                f"Topic {self.name} has cleanup.policy={policy}, which would delete records that "
                f"are still needed. Change it: {alter_topic(self.name, 'cleanup.policy=compact')}"
            )
        copies = min(len(partition.replicas) for partition in self._describe().partitions)
        in_sync = int(config["min.insync.replicas"].value)
        if in_sync > copies:
            raise ConfigurationError(
                f"Topic {self.name} has {copies} copies of its partitions and "
                f"min.insync.replicas={in_sync}: nothing can be written. Lower "
                "min.insync.replicas: "
                + alter_topic(self.name, f"min.insync.replicas={in_sync_wanted(copies)}")
            )
        if why := too_few(copies, in_sync, brokers):
            log.warning("Topic %s %s", self.name, why)
        if why := self.codec_warning(config):
            log.warning(why)

    def _failure(self, error: KafkaException, what: str) -> Exception:
        carried = kafka_error(error)
        message = f"Topic {self.name} {what}: {carried.str()}"
        if carried.code() in TRANSIENT or carried.retriable():
            return KafkaUnavailableError(message)
        return ConfigurationError(message)


def _record(group: str, message: Message) -> Record:
    return Record(
        group=group,
        value=message.value(),
        headers=[(name, text or b"") for name, text in message.headers() or ()],
        position=Position(message.partition() or 0, message.offset() or 0),
        published_at=datetime.fromtimestamp(message.timestamp()[1] / 1000, UTC),
    )
