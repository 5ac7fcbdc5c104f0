"""The actual owners in groups of confluent-kafka followers, which the broker does not know.

Belongs here: reading the coordination topic for the planner, and applying assignment records to the
broker's description. Does not: how members agree (`fairlead.followers.confluent.agreement_round`),
nor describing groups (`gateway`).

The broker assigns by `range`; the members then redistribute these partitions by the first
assignment record of the generation. Coordinators do not report the generation. But member ids are
never reused, so the record of the present generation is the newest one whose members are all
present and whose partitions are exactly those that `range` gave them.
Members that it does not list keep their partitions from `range`.
"""

import logging
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, TopicPartition

from fairlead.common.librdkafka import kafka_error
from fairlead.domain.advice import AGREED, CLASSIC
from fairlead.domain.groups import GroupDescription, LiveMember
from fairlead.errors import KafkaUnavailableError
from fairlead.kafka.descriptions import STABLE
from fairlead.kafka.requests import ABOUT_A_GROUP, MISSING
from fairlead.settings import KafkaSettings
from fairlead.wire.agreement import AssignmentRecord, decode
from fairlead.wire.partitions import partition_for_key

log = logging.getLogger(__name__)

_RANGE: Final = "range"
_AT_ONCE: Final = 10_000
#: Retention of the topic; members write the valid assignment record again every few hours.
_KEPT_S: Final = 24 * 60 * 60.0


def with_agreed_shares(
    descriptions: Mapping[str, GroupDescription], reader: "CoordinationReader"
) -> dict[str, GroupDescription]:
    """Apply assignment records to the groups that agree through the coordination topic.

    If the coordination topic does not exist, nothing changes. If it cannot be read, a warning is
    logged and the broker's view stays.

    Parameters
    ----------
    descriptions
        Group to the broker's description.
    reader
        The coordination topic.
    """
    groups = [
        name
        for name, described in descriptions.items()
        if (described.group_type, described.protocol, described.state) == (CLASSIC, _RANGE, STABLE)
        and described.members
    ]
    if not groups:
        return dict(descriptions)
    try:
        values = reader.read(groups)
    except (KafkaException, KafkaUnavailableError) as error:
        why = kafka_error(error).str() if isinstance(error, KafkaException) else error
        log.warning(
            "The coordination topic %s cannot be read (%s): groups of confluent-kafka followers "
            "are shown with the partitions that range gave them",
            reader.name,
            why,
        )
        return dict(descriptions)
    return {
        **descriptions,
        **{
            name: with_records(
                descriptions[name], filter(None, map(decode_assignment, values[name]))
            )
            for name in groups
            if name in values
        },
    }


def with_records(
    described: GroupDescription, records: Iterable[AssignmentRecord]
) -> GroupDescription:
    """Return a group with the owners from its present record, and the protocol `AGREED`."""
    record = _present_record(described.members, records)
    if record is None:
        return described
    return replace(described, protocol=AGREED, members=_shared(described.members, record))


def _shared(members: Iterable[LiveMember], record: AssignmentRecord) -> tuple[LiveMember, ...]:
    return tuple(
        replace(member, partitions=dict(sorted(record.shares[member.member_id].items())))
        if member.member_id in record.shares
        else member
        for member in members
    )


def _present_record(
    members: Sequence[LiveMember], records: Iterable[AssignmentRecord]
) -> AssignmentRecord | None:
    """Return the assignment record of the group's present generation; None: there is none."""
    range_shares = {member.member_id: member.partitions for member in members}
    decided: AssignmentRecord | None = None
    for record in records:  # only the first valid record of a generation counts
        newer = decided is None or record.generation > decided.generation
        if newer and record.assigns_exactly(range_shares):
            decided = record
    return decided


def decode_assignment(value: bytes | None) -> AssignmentRecord | None:
    """Read an assignment record; None: the record is not an assignment record."""
    record = decode(value)
    return record if isinstance(record, AssignmentRecord) else None


@dataclass(frozen=True)
class _Read:
    """The records that this process has read from a coordination topic.

    Parameters
    ----------
    next
        Partition to the offset after the last record read.
    records
        Key to its records of the last day in log order: timestamp in ms, and value.
    lock
        Locked while the topic is read.
    """

    next: dict[int, int] = field(default_factory=dict)
    records: dict[bytes, list[tuple[int, bytes | None]]] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def forget(self, before_ms: float) -> None:
        """Drop older records."""
        for key, records in list(self.records.items()):
            if records[0][0] < before_ms:
                self.records[key] = [record for record in records if record[0] >= before_ms]
                if not self.records[key]:
                    del self.records[key]


#: Cluster and topic to the records that this process has read.
_READ: Final[dict[tuple[str, str], _Read]] = {}


class CoordinationReader:
    """The coordination topic; a process reads each record once, even through several instances.

    Parameters
    ----------
    settings
        How to reach the cluster, and the topic's name.
    """

    def __init__(self, settings: KafkaSettings) -> None:
        self._settings = settings
        self._consumer: Consumer | None = None
        self._read = _READ.setdefault(
            (settings.bootstrap_servers, settings.coordination_topic), _Read()
        )

    @property
    def name(self) -> str:
        """The topic's name."""
        return self._settings.coordination_topic

    def read(self, groups: Sequence[str]) -> dict[str, list[bytes | None]]:
        """Read to the end of the groups' partitions; return each group's records of the last day.

        Raises
        ------
        KafkaException
            The broker refuses.
        KafkaUnavailableError
            Reading takes longer than the request time-out.
        """
        consumer = self._open()
        timeout_s = self._settings.request_timeout_s
        topic = consumer.list_topics(self.name, timeout=timeout_s).topics[self.name]
        if topic.error is not None:
            if topic.error.code() in MISSING:
                return {}
            raise KafkaException(topic.error)
        keys = {group.encode(): group for group in groups}
        partitions = {partition_for_key(group, len(topic.partitions)) for group in groups}
        with self._read.lock:
            starts = [
                (number, self._read.next.get(number, OFFSET_BEGINNING)) for number in partitions
            ]
            consumer.assign([TopicPartition(self.name, number, start) for number, start in starts])
            self._drain(consumer, partitions, timeout_s)
            self._read.forget(1000.0 * (time.time() - _KEPT_S))
            records = self._read.records
            return {
                group: [value for _, value in records[key]]
                for key, group in keys.items()
                if key in records
            }

    def close(self) -> None:
        """Close the connection."""
        if self._consumer is not None:
            self._consumer.close()
            self._consumer = None

    def _open(self) -> Consumer:
        if self._consumer is None:
            self._consumer = Consumer(
                self._settings.librdkafka(
                    **{
                        "group.id": "fairlead-coordination",  # required, never joined
                        "enable.auto.commit": "false",
                        "enable.partition.eof": "true",
                        "auto.offset.reset": "earliest",  # newer records may be deleted
                        "fetch.wait.max.ms": "50",
                    }
                )
            )
        return self._consumer

    def _drain(self, consumer: Consumer, pending: set[int], timeout_s: float) -> None:
        """Store records until every partition is read to its end."""
        deadline = time.monotonic() + timeout_s
        while pending:
            if time.monotonic() > deadline:
                raise KafkaUnavailableError(f"not read to its end within {timeout_s:.0f} s")
            for message in consumer.consume(_AT_ONCE, 0.1):
                if (error := message.error()) is None:
                    record = (message.timestamp()[1], message.value())
                    self._read.records.setdefault(message.key() or b"", []).append(record)
                    self._read.next[message.partition() or 0] = (message.offset() or 0) + 1
                elif error.code() == KafkaError._PARTITION_EOF:
                    pending.discard(message.partition())
                elif not error.retriable() and error.code() not in ABOUT_A_GROUP:
                    raise KafkaException(error)
