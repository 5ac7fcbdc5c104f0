"""The actual owners of partitions in groups of confluent-kafka consumers that follow plans.

Belongs here: reading the coordination topic for the planner, and applying assignment records to the
broker's description. Belongs elsewhere: how members agree on an assignment
(`fairlead.followers.confluent.agreement_round`), and describing groups (`gateway`).

In these groups, the assignor `range` assigns the partitions, and brokers know only this assignment.
The members then exchange partitions as the first valid assignment record of the generation
requires. A member writes this record to the coordination topic. Coordinators do not report the
generation. But member ids are never reused, so the record of the present generation can be
recognised. It is the newest record that meets two conditions: all its members are present, and its
partitions are exactly those that `range` gave to these members. Members that the record does not
list keep their partitions from `range`.
"""

import logging
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from confluent_kafka import OFFSET_BEGINNING, KafkaException, TopicPartition

from fairlead.common.librdkafka import kafka_error
from fairlead.domain.advice import AGREED, CLASSIC
from fairlead.domain.groups import GroupDescription, LiveMember
from fairlead.errors import KafkaUnavailableError
from fairlead.kafka.descriptions import STABLE
from fairlead.kafka.requests import MISSING, read_to_end, reader
from fairlead.settings import KafkaSettings
from fairlead.wire.agreement import AssignmentRecord, decode
from fairlead.wire.partitions import partition_for_key

log = logging.getLogger(__name__)

_RANGE: Final = "range"
#: Seconds. Older records are ignored. The valid assignment record is never that old, because
#: members write it again every few hours.
_KEPT_S: Final = 24 * 60 * 60.0


def with_agreed_shares(
    descriptions: Mapping[str, GroupDescription], settings: KafkaSettings
) -> dict[str, GroupDescription]:
    """Correct the owners in groups whose members agree on assignments in the coordination topic.

    If the topic does not exist or cannot be read, returns the descriptions unchanged. If the topic
    cannot be read, also logs a warning.

    Parameters
    ----------
    descriptions
        Maps each group to the broker's description.
    settings
        The cluster, and the coordination topic.
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
        records = read_assignments(settings, groups)
    except (KafkaException, KafkaUnavailableError) as error:
        why = kafka_error(error).str() if isinstance(error, KafkaException) else error
        log.warning(
            "The coordination topic %s cannot be read (%s): groups of confluent-kafka clients "
            "are shown with the partitions that the range assignor gave them",
            settings.coordination_topic,
            why,
        )
        return dict(descriptions)
    agreed = {name: with_records(descriptions[name], records[name]) for name in records}
    return {**descriptions, **agreed}


def with_records(
    described: GroupDescription, records: Iterable[AssignmentRecord]
) -> GroupDescription:
    """Return the description with the owners from the present generation's assignment record.

    The protocol of the result is `AGREED`. If there is no assignment record of the present
    generation, returns the description unchanged.
    """
    record = _present_record(described.members, records)
    if record is None:
        return described
    shares = {name: dict(sorted(share.items())) for name, share in record.shares.items()}
    members = tuple(
        replace(member, partitions=shares.get(member.member_id, member.partitions))
        for member in described.members
    )
    return replace(described, protocol=AGREED, members=members)


def _present_record(
    members: Sequence[LiveMember], records: Iterable[AssignmentRecord]
) -> AssignmentRecord | None:
    """Return the assignment record of the group's present generation; None if there is none."""
    range_shares = {member.member_id: member.partitions for member in members}
    valid = (record for record in records if record.assigns_exactly(range_shares))
    # Only the first valid record of a generation counts: max returns the first of equals.
    return max(valid, key=lambda record: record.generation, default=None)


@dataclass(frozen=True)
class _Read:
    """The records that this process has read from a coordination topic.

    Parameters
    ----------
    next
        Maps each partition to the offset of the next record to read.
    records
        Maps each key to its records of the last day, in the order of the log. A record is a
        timestamp in milliseconds, and a value.
    lock
        Held while the topic is read.
    """

    next: dict[int, int] = field(default_factory=dict)
    records: dict[bytes, list[tuple[int, bytes | None]]] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)


#: Maps cluster and topic to the records that this process has read: each record is read only once.
_READ: Final[dict[tuple[str, str], _Read]] = {}


def read_assignments(
    settings: KafkaSettings, groups: Sequence[str]
) -> dict[str, list[AssignmentRecord]]:
    """Return each group's records of the last day; {} if the coordination topic does not exist.

    Reads only those partitions of the topic that contain the groups' records.

    Raises
    ------
    KafkaException
        The broker refuses a request.
    KafkaUnavailableError
        Reading takes longer than the request time-out.
    """
    name, timeout_s = settings.coordination_topic, settings.request_timeout_s
    read = _READ.setdefault((settings.bootstrap_servers, name), _Read())
    consumer = reader(settings)
    try:
        topic = consumer.list_topics(name, timeout=timeout_s).topics[name]
        if topic.error is not None:
            if topic.error.code() in MISSING:
                return {}
            raise KafkaException(topic.error)
        partitions = {partition_for_key(group, len(topic.partitions)) for group in groups}
        with read.lock:
            positions = [
                TopicPartition(name, number, read.next.get(number, OFFSET_BEGINNING))
                for number in partitions
            ]
            for message in read_to_end(consumer, positions, timeout_s):
                record = (message.timestamp()[1], message.value())
                read.records.setdefault(message.key() or b"", []).append(record)
                read.next[message.partition() or 0] = (message.offset() or 0) + 1
            oldest = 1000.0 * (time.time() - _KEPT_S)
            for key, records in list(read.records.items()):
                read.records[key] = [record for record in records if record[0] >= oldest]
                if not read.records[key]:
                    # Members can write arbitrary keys; keeping them all would exhaust the memory.
                    del read.records[key]
            decoded = {
                group: [decode(value) for _, value in read.records.get(group.encode(), ())]
                for group in groups
            }
    finally:
        consumer.close()
    return {
        group: [record for record in records if isinstance(record, AssignmentRecord)]
        for group, records in decoded.items()
    }
