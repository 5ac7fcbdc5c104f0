"""The pin topic: the log through which the members of a group agree, written and tailed.

Belongs here: the producer and the tail consumer, and whether it is still the same log. Does not:
the topic's settings (`topics`), the records (`fairlead.wire.pins`), nor what they mean
(`roll_call`).

A group's records stand in the one partition where its key lands.
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
from confluent_kafka.admin import AdminClient, OffsetSpec

from fairlead.followers.confluent.clients import Sender, admin_client, forget, sender
from fairlead.followers.confluent.config import patience_of
from fairlead.followers.confluent.topics import TopicIdRequest, cause_of
from fairlead.wire.partitions import partition_for_key
from fairlead.wire.pin_seals import Seal
from fairlead.wire.pins import Record, decode, encode

log = logging.getLogger(__name__)

_ENOUGH: Final = 1000
# After these what was read and what comes may belong to two different logs.
_BROKEN: Final = frozenset(
    {
        KafkaError.OFFSET_OUT_OF_RANGE,
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.UNKNOWN_TOPIC_ID,  # type: ignore[attr-defined] # newer than the stubs
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError._AUTO_OFFSET_RESET,  # noqa: SLF001 - librdkafka's name
        KafkaError._LOG_TRUNCATION,  # noqa: SLF001
        KafkaError._UNKNOWN_PARTITION,  # noqa: SLF001
        KafkaError._UNKNOWN_TOPIC,  # noqa: SLF001
    }
)
# Each of these a broker answers before it writes anything, and none is tried again.
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
        KafkaError._PURGE_QUEUE,  # noqa: SLF001 - librdkafka's name
        KafkaError._UNKNOWN_PARTITION,  # noqa: SLF001
        KafkaError._UNKNOWN_TOPIC,  # noqa: SLF001
    }
)


class Entry(NamedTuple):
    """A record as it stands in the log, and the leader epoch in which it was written."""

    record: Record
    epoch: int = 0


@dataclass
class Sent:
    """What has become of a record that was sent; that it arrived is known when it is read.

    Parameters
    ----------
    refused
        Why it surely does not stand in the log; None: it may.
    doubtful
        Why it is not known whether it does; None: it is on its way, or there.
    """

    refused: str | None = None
    doubtful: str | None = None

    def note(self, error: KafkaError) -> None:
        """Take note of the client's report."""
        if error.code() in _NOT_WRITTEN:
            self.refused = error.str()
        else:
            self.doubtful = error.str()


class PinLog:
    """One group's part of the pin topic, from its end at the time of opening.

    Not for several threads. What asks the cluster something (`open`, `skip_to_end`, `look`,
    `partition_count`) waits for the answer; nothing else here does.

    Parameters
    ----------
    tail
        A consumer of its own.
    producer, admin
        What sends, and what asks beside the tail, whose own requests wait behind its fetches.
    partition
        Where the group's key lands, and where to begin.
    group
        The group id.
    identity
        The topic's id; "": unknown.
    secrets
        What the members seal their records with, as `pin_seal.read_secrets` returns them.
    """

    def __init__(
        self,
        tail: Consumer,
        producer: Sender,
        admin: AdminClient,
        partition: TopicPartition,
        group: str,
        *,
        identity: str,
        secrets: tuple[bytes, ...] = (),
    ) -> None:
        self._tail = tail
        self._producer = producer
        self._admin = admin
        self._partition = partition
        self._group = group
        self._key = group.encode()
        self._floor = partition.offset
        self.identity = identity
        self._seal = Seal(group, identity, secrets)
        self.broken: str | None = None
        tail.assign([partition])

    @classmethod
    def open(
        cls,
        group: str,
        connection: Mapping[str, Any],
        topic: str,
        *,
        timeout_s: float,
        secrets: tuple[bytes, ...] = (),
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
            How long each of three requests may take.
        secrets
            What the members seal their records with.

        Raises
        ------
        KafkaException
            The topic is missing, or no broker answers in time.
        """
        tail = Consumer(
            {
                **connection,
                "group.id": group,  # required, never joined: the one the consumer may read
                "enable.auto.commit": False,
                "auto.offset.reset": "error",
                "fetch.wait.max.ms": patience_of(connection),
                "fetch.error.backoff.ms": 50,
                # While many members announce themselves, fetch what they said together.
                "queued.min.messages": 1,
                "fetch.queue.backoff.ms": 5,
                "reconnect.backoff.max.ms": 1000,
            }
        )
        try:
            admin = admin_client(connection)
            identity = TopicIdRequest(admin, topic, timeout_s)
            found = tail.list_topics(topic, timeout=timeout_s).topics[topic]
            if found.error is not None:
                raise KafkaException(found.error)  # noqa: TRY301 - the tail is closed here
            number = partition_for_key(group, len(found.partitions))
            _, end = tail.get_watermark_offsets(TopicPartition(topic, number), timeout=timeout_s)
            partition = TopicPartition(topic, number, end)
            return cls(
                *(tail, sender(connection), admin, partition, group),
                identity=identity.answer(),
                secrets=secrets,
            )
        except BaseException:
            tail.close()
            raise

    def append(self, record: Record) -> Sent:
        """Send a record, once. That it arrived is known when `read` returns it."""
        sent, read_to, value = Sent(), self._floor, encode(record)
        known = weakref.ref(self)  # the producer keeps the callback, and this keeps the producer

        def delivered(error: KafkaError | None, message: Message) -> None:
            offset = message.offset()
            if error is not None:
                sent.note(error)
            elif offset is not None and 0 <= offset < read_to and (told := known()) is not None:
                told.broken = f"it was made anew: offset {offset} follows {read_to - 1}"

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
            sent.note(cause_of(error))
        except BufferError as error:
            sent.refused = str(error)
        return sent

    def read(self, timeout_s: float) -> list[Entry]:
        """Wait at most `timeout_s` for the next records of the group."""
        self._producer.poll(0)
        entries = []
        # consume() would wait for its whole time-out, whatever is there.
        first = self._tail.poll(timeout_s)
        messages = [] if first is None else [first, *self._tail.consume(_ENOUGH, 0.002)]
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
                log.debug("A record of the pin topic has no seal of the group's members")
            elif (record := decode(value)) is not None:
                entries.append(Entry(record, epoch))
        return entries

    def skip_to_end(self, timeout_s: float) -> None:
        """Pass over whatever stands in the log by now; where that cannot be known, it is broken."""
        partition = self._partition
        asked = self._admin.list_offsets(
            {TopicPartition(partition.topic, partition.partition): OffsetSpec.latest()},
            isolation_level=IsolationLevel.READ_UNCOMMITTED,
            request_timeout=timeout_s,
        )
        try:
            (answer,) = asked.values()
            found: Any = answer.result(timeout_s + 1)
        except KafkaException as error:
            self.broken = cause_of(error).str()
        except TimeoutError:
            self.broken = "the cluster does not say where it ends"
        else:
            end = int(found.offset)
            if end < 0:  # which librdkafka returns where a leader is gone
                self.broken = "its leader does not say where it ends"
            elif end < self._floor:
                self.broken = f"it was made anew: it ends at {end}, and {self._floor - 1} was read"
            self._floor = end

    def look(self, timeout_s: float, *, identity: bool) -> None:
        """Ask whether this still is the group's part of the topic; if not, it is broken.

        Parameters
        ----------
        timeout_s
            How long each request may take.
        identity
            Ask for the topic's id, too: records of another log have been read.
        """
        topic = self._partition.topic
        count = self.partition_count(topic, timeout_s)
        if count and partition_for_key(self._group, count) != self._partition.partition:
            self.broken = f"it has grown to {count} partitions, and the group's is another one now"
        elif identity:
            try:
                now = TopicIdRequest(self._admin, topic, timeout_s).answer()
            except KafkaException as error:
                log.debug("The id of pin topic %s cannot be read: %s", topic, error)
            else:
                if now != self.identity:
                    self.broken = f"it was made anew: its id is {now}, and was {self.identity}"

    def partition_count(self, topic: str, timeout_s: float) -> int | None:
        """Ask the cluster how many partitions a topic has; None: unknown.

        Asked through the producer: on a consumer the request waits behind its own fetches.
        """
        try:
            found = self._producer.list_topics(topic, timeout=timeout_s).topics[topic]
        except KafkaException:
            return None
        return None if found.error is not None else len(found.partitions)

    def broker_assigns(self, timeout_s: float) -> bool:
        """Ask whether the group is one of the consumer protocol; where that is unknown: no.

        Brokers before KIP-848 know of no such groups, and one that does not answer converts none.
        """
        asked = self._admin.list_consumer_groups(
            types={ConsumerGroupType.CONSUMER},  # type: ignore[call-arg] # as above
            request_timeout=timeout_s,
        )
        try:
            found = asked.result(timeout_s + 1).valid
        except (KafkaException, TimeoutError) as error:
            log.debug("What type group %s is of cannot be read: %s", self._group, error)
            return False
        return any(member.group_id == self._group for member in found)

    def close(self) -> None:
        """Let go of the connections; where it is broken, nobody else shall have the same."""
        self._producer.poll(0)
        if self.broken is not None:
            forget(self._producer)
            forget(self._admin)
        self._tail.close()
