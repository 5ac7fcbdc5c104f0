"""The pin topic: the log through which the members of a group agree, written and tailed.

Belongs here: the producer, what is read, and whether it is still the same log. Does not: the
consumer (`tail`), the topic's settings (`topics`), the records (`fairlead.wire.pins`), nor what
they mean (`roll_call`).

A group's records stand in the one partition where its key lands.
"""

import logging
import time
from dataclasses import dataclass
from typing import Final, NamedTuple

from confluent_kafka import (  # type: ignore[attr-defined] # the type is newer than the stubs
    ConsumerGroupType,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import OffsetSpec

from fairlead.followers.confluent.tail import Tails
from fairlead.followers.confluent.topics import Cluster, cause_of
from fairlead.wire.partitions import home_of
from fairlead.wire.pin_seals import Seal
from fairlead.wire.pins import LARGEST_RECORD, Record, decode, encode

log = logging.getLogger(__name__)

#: How long a record may be on its way before nobody waits for it any more.
_SEND_S: Final = 2.0
#: How long a producer is kept that sends nothing: rebalances come together, or hours apart.
_KEPT_S: Final = 60.0
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
    tails
        What it is read through, from now on.
    partition
        Where the group's key lands, and where to begin.
    identity
        The topic's id; "": unknown.
    secrets
        What the members seal their records with, as `pin_seal.read_secrets` returns them.
    """

    def __init__(
        self,
        tails: Tails,
        partition: TopicPartition,
        *,
        identity: str,
        secrets: tuple[bytes, ...] = (),
    ) -> None:
        self._cluster: Cluster = tails.cluster
        self._group = tails.group
        self._key = tails.group.encode()
        self._place = partition.topic, partition.partition
        self._floor = partition.offset
        self.identity = identity
        self._seal = Seal(tails.group, identity, secrets)
        self.broken: str | None = None
        self._producer: Producer | None = None
        self._sent_at = 0.0
        self._tail = tails.begin(partition)

    @classmethod
    def open(
        cls, tails: Tails, topic: str, *, timeout_s: float, secrets: tuple[bytes, ...] = ()
    ) -> "PinLog":
        """Connect, and stand at the end of the log.

        Parameters
        ----------
        tails
            What it is to be read through.
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
        cluster = tails.cluster
        _, found = cluster.metadata(topic, timeout_s)
        if found.error is not None:
            raise KafkaException(found.error)
        number = home_of(tails.group, len(found.partitions))
        end = cluster.offset(topic, number, OffsetSpec.latest(), timeout_s)
        identity = cluster.topic_id(topic, timeout_s)
        partition = TopicPartition(topic, number, end)
        return cls(tails, partition, identity=identity, secrets=secrets)

    def append(self, record: Record) -> Sent:
        """Send a record, once. That it arrived is known when `read` returns it."""
        sent, read_to, value = Sent(), self._floor, encode(record)

        def delivered(error: KafkaError | None, message: Message) -> None:
            offset = message.offset()
            if error is not None:
                sent.note(error)
            elif offset is not None and 0 <= offset < read_to:
                self.broken = f"it was made anew: offset {offset} follows {read_to - 1}"

        try:
            producer = self._producer = self._producer or self._new_producer()
        except KafkaException as error:
            sent.refused = cause_of(error).str()
            return sent
        self._sent_at = time.monotonic()
        try:
            producer.produce(
                self._place[0],
                value,
                key=self._key,
                headers=self._seal.headers(value),
                partition=self._place[1],
                on_delivery=delivered,
            )
            producer.poll(0)
        except KafkaException as error:
            sent.note(cause_of(error))
        except BufferError as error:
            sent.refused = str(error)
        return sent

    def read(self, timeout_s: float) -> list[Entry]:
        """Wait at most `timeout_s` for the next records of the group."""
        self._serve_producer()
        entries = []
        for message in self._tail.read(self._place, timeout_s):
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
        try:
            end = self._cluster.offset(*self._place, OffsetSpec.latest(), timeout_s)
        except KafkaException as error:
            self.broken = cause_of(error).str()
            return
        if end < self._floor:
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
        topic, number = self._place
        count = self.partition_count(topic, timeout_s)
        if count and home_of(self._group, count) != number:
            self.broken = f"it has grown to {count} partitions, and the group's is another one now"
        elif identity:
            try:
                now = self._cluster.topic_id(topic, timeout_s)
            except KafkaException as error:
                log.debug("The id of pin topic %s cannot be read: %s", topic, error)
            else:
                if now != self.identity:
                    self.broken = f"it was made anew: its id is {now}, and was {self.identity}"

    def partition_count(self, topic: str, timeout_s: float) -> int | None:
        """Ask the cluster how many partitions a topic has; None: unknown."""
        try:
            _, found = self._cluster.metadata(topic, timeout_s)
        except KafkaException:
            return None
        return None if found.error is not None else len(found.partitions)

    def broker_assigns(self, timeout_s: float) -> bool:
        """Ask whether the group is one of the consumer protocol; where that is unknown: no.

        Brokers before KIP-848 know of no such groups, and one that does not answer converts none.
        """
        try:
            with self._cluster.asking() as admin:
                asked = admin.list_consumer_groups(
                    types={ConsumerGroupType.CONSUMER},  # type: ignore[call-arg] # as above
                    request_timeout=timeout_s,
                )
                found = asked.result(timeout_s + 1).valid
        except KafkaException as error:
            log.debug("What type group %s is of cannot be read: %s", self._group, error)
            return False
        return any(one.group_id == self._group for one in found)

    def close(self) -> None:
        """Let go of the connections; what is not yet sent is not sent any more."""
        producer, self._producer = self._producer, None
        if producer is not None:
            producer.purge()
            producer.flush(0)
        self._tail.remove(self._place)

    def _new_producer(self) -> Producer:
        return Producer(
            {
                **self._cluster.connection,
                "acks": "all",
                # A record that is refused is not there, and one that is lost is not waited
                # for: whoever sent it decides what then, and the client sends it once.
                "retries": 0,
                "message.timeout.ms": int(_SEND_S * 1000),
                "linger.ms": 0,
                # A pin of 50,000 partitions is larger than the megabyte that brokers take;
                # compressed it is not. Every client can read gzip.
                "compression.type": "gzip",
                "message.max.bytes": LARGEST_RECORD,
                "reconnect.backoff.max.ms": 1000,
            }
        )

    def _serve_producer(self) -> None:
        """Hear what has become of records; let go of a producer that has long had none to send."""
        if self._producer is None:
            return
        self._producer.poll(0)
        at_rest = time.monotonic() >= self._sent_at + _KEPT_S and not len(self._producer)
        # Where the application gives out tokens, another login might hold a roll call up.
        if at_rest and "oauth_cb" not in self._cluster.connection:
            self._producer = None
