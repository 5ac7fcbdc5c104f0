"""The pin topic: the log through which the members of a group agree, written and tailed.

Belongs here: the records' bytes, the topic's settings, the producer and the tail consumer. Does
not: what records mean (`roll_call`).

Append only: compaction would remove the record that decides. A group's records stand in the one
partition where its key lands. A day's retention is long: a record matters for seconds.
"""

import json
import logging
from collections.abc import Mapping
from typing import Any, Final

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, ResourceType

from fairlead.errors import ConfigurationError
from fairlead.followers.members import read_identity
from fairlead.followers.partitions import home_of
from fairlead.followers.roll_call import Here, Partitions, Pin
from fairlead.plans.partition_sets import format_partitions, parse_partitions

log = logging.getLogger(__name__)

TOPIC_CONFIG: Final = {"cleanup.policy": "delete", "retention.ms": str(24 * 60 * 60 * 1000)}
PIN_PARTITIONS: Final = 8

#: Members heed records of their own format alone. In a group of two formats each half deals out
#: what it has ceded itself, so that nothing overlaps.
_FORMAT: Final = 2
_MOST_PARTITIONS: Final = 1_000_000  # of a topic: bounds what a hostile record can ask for
_ENOUGH: Final = 1000
_LARGEST_RECORD: Final = 50_000_000
# After these what was read and what comes may belong to two different logs.
_BROKEN: Final = frozenset(
    {
        KafkaError.OFFSET_OUT_OF_RANGE,
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.UNKNOWN_TOPIC_ID,  # type: ignore[attr-defined] # newer than the stubs
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError._AUTO_OFFSET_RESET,  # noqa: SLF001 - librdkafka's name
        KafkaError._UNKNOWN_PARTITION,  # noqa: SLF001
        KafkaError._UNKNOWN_TOPIC,  # noqa: SLF001
    }
)


class PinLog:
    """One group's part of the pin topic, from its end at the time of opening.

    Not for several threads. Nothing here blocks but `open`.

    Parameters
    ----------
    tail, producer
        librdkafka handles of its own.
    partition
        Where the group's key lands, and where to begin.
    group
        The group id.
    """

    def __init__(
        self, tail: Consumer, producer: Producer, partition: TopicPartition, group: str
    ) -> None:
        self._tail = tail
        self._producer = producer
        self._partition = partition
        self._key = group.encode()
        self._position = partition.offset
        self.broken: str | None = None
        tail.assign([partition])

    @classmethod
    def open(
        cls, group: str, connection: Mapping[str, Any], topic: str, *, timeout_s: float
    ) -> "PinLog":
        """Connect, and stand at the end of the log.

        Parameters
        ----------
        group
            The group id.
        connection
            librdkafka's settings of how to reach the cluster.
        topic
            The pin topic; it must exist.
        timeout_s
            How long each of two requests may take.

        Raises
        ------
        KafkaException
            The topic is missing, or no broker answers in time.
        """
        tail = Consumer(
            {
                **connection,
                "group.id": f"{group}-pins",  # required, never joined
                "enable.auto.commit": False,
                "auto.offset.reset": "error",
                "allow.auto.create.topics": False,
                "fetch.wait.max.ms": 100,
                "fetch.error.backoff.ms": 50,
                # While many members announce themselves, fetch what they said together.
                "queued.min.messages": 1,
                "fetch.queue.backoff.ms": 5,
                "reconnect.backoff.max.ms": 1000,
            }
        )
        try:
            found = tail.list_topics(topic, timeout=timeout_s).topics[topic]
            if found.error is not None:
                raise KafkaException(found.error)  # noqa: TRY301 - the tail is closed here
            number = home_of(group, len(found.partitions))
            partition = TopicPartition(topic, number)
            _, end = tail.get_watermark_offsets(partition, timeout=timeout_s)
            producer = Producer(
                {
                    **connection,
                    "acks": "all",
                    "enable.idempotence": True,
                    "linger.ms": 0,
                    # A pin of 50,000 partitions is larger than the megabyte that brokers take;
                    # compressed it is not. Every client can read gzip.
                    "compression.type": "gzip",
                    "message.max.bytes": _LARGEST_RECORD,
                    "reconnect.backoff.max.ms": 1000,
                }
            )
            return cls(tail, producer, TopicPartition(topic, number, end), group)
        except BaseException:
            tail.close()
            raise

    def append(self, record: Here | Pin) -> None:
        """Send a record. Whether it arrived is known when `read` returns it."""
        read_to = self._position

        def delivered(error: KafkaError | None, message: Message) -> None:
            offset = message.offset()
            if error is not None:
                self.broken = error.str()
            elif offset is not None and 0 <= offset < read_to:
                self.broken = f"it was made anew: offset {offset} follows {read_to - 1}"

        try:
            self._producer.produce(
                self._partition.topic,
                encode(record),
                key=self._key,
                partition=self._partition.partition,
                on_delivery=delivered,
            )
            self._producer.poll(0)
        except (KafkaException, BufferError) as error:
            self.broken = str(error)

    def read(self, timeout_s: float) -> list[Here | Pin]:
        """Wait at most `timeout_s` for the next records of the group."""
        self._producer.poll(0)
        records = []
        # consume() would wait for its whole time-out, whatever is there.
        first = self._tail.poll(timeout_s)
        messages = [] if first is None else [first, *self._tail.consume(_ENOUGH, 0.002)]
        for message in messages:
            if (error := message.error()) is not None:
                if error.code() in _BROKEN:
                    self.broken = error.str()
                continue
            self._position = (message.offset() or 0) + 1
            if message.key() == self._key and (record := decode(message.value())) is not None:
                records.append(record)
        return records

    def partition_count(self, topic: str, timeout_s: float) -> int | None:
        """Ask the cluster how many partitions a topic has; None: unknown.

        Asked through the producer: on a consumer the request waits behind its own fetches.
        """
        try:
            found = self._producer.list_topics(topic, timeout=timeout_s).topics[topic]
        except KafkaException:
            return None
        return None if found.error is not None else len(found.partitions)

    def close(self) -> None:
        """Let go of the connections; what is not yet sent is not sent any more."""
        self._producer.purge()
        self._producer.flush(0)
        self._tail.close()


def create_pin_topic(connection: Mapping[str, Any], topic: str, *, timeout_s: float = 10.0) -> None:
    """Create the pin topic unless it exists.

    Raises
    ------
    ConfigurationError
        It may not be created.
    KafkaException
        No broker answers in time.
    """
    admin = AdminClient(dict(connection))
    new = NewTopic(topic, PIN_PARTITIONS, config=TOPIC_CONFIG)  # replicas: the brokers' default
    try:
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
    except TimeoutError as error:
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT)) from error  # noqa: SLF001


def check_pin_topic(connection: Mapping[str, Any], topic: str, *, timeout_s: float = 10.0) -> None:
    """Check that the pin topic is not compacted, where its settings may be read.

    Raises
    ------
    ConfigurationError
        It is compacted.
    """
    admin = AdminClient(dict(connection))
    resource = ConfigResource(ResourceType.TOPIC, topic)
    try:
        config = admin.describe_configs([resource], request_timeout=timeout_s)[resource].result(
            timeout_s + 1
        )
    except (KafkaException, TimeoutError) as error:
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


def encode(record: Here | Pin) -> bytes:
    """Write a record.

    Examples
    --------
    >>> here = Here(3, "m1", "a", ("t",), {"t": (0, 1, 7)})
    >>> decode(encode(here)) == here
    True
    """
    values: dict[str, Any] = {"fairlead": _FORMAT, **vars(record)}
    if isinstance(record, Here):
        values.update(type="here", given=_ranges(record.given))
    else:
        shares = {member: _ranges(share) for member, share in record.shares.items()}
        values.update(type="pin", shares=shares)
    return json.dumps(values, separators=(",", ":")).encode()


def decode(value: bytes | None) -> Here | Pin | None:
    """Read a record; None: it is none of ours.

    Examples
    --------
    >>> decode(b"garbage") is None
    True
    """
    try:
        values = json.loads(value or b"null")
        if values.pop("fairlead") != _FORMAT or not isinstance(values["generation"], int):
            return None
        kind = values.pop("type")
        values["seen"] = read_identity(values["seen"])
        values["topics"] = tuple(values["topics"])
        if kind == "here":
            return Here(**{**values, "given": _numbers(values["given"])})
        shares = {member: _numbers(share) for member, share in values["shares"].items()}
        return Pin(**{**values, "shares": shares})
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        log.debug("A record of the pin topic is no roll call's: %s", error)
        return None


def _ranges(partitions: Partitions) -> dict[str, str]:
    return {topic: format_partitions(numbers) for topic, numbers in partitions.items()}


def _numbers(ranges: Mapping[str, str]) -> Partitions:
    return {
        topic: tuple(parse_partitions(text, below=_MOST_PARTITIONS).tolist())
        for topic, text in ranges.items()
    }
