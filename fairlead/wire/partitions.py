"""Conversions of partitions, topic ids and keys.

Belongs here: conversions that the modules of all clients need, and finding the partition of a
group's records. Belongs elsewhere: assignments.
"""

import base64
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

from assignors.partitioner import partition_of

#: Topic and partition number.
Pair = tuple[str, int]
#: Maps each topic to partition numbers.
Partitions = Mapping[str, tuple[int, ...]]


def pairs(partitions: Mapping[str, Iterable[int]]) -> Iterator[Pair]:
    """Yield the topic and the number of each partition.

    Examples
    --------
    >>> list(pairs({"t": (0, 1), "u": (0,)}))
    [('t', 0), ('t', 1), ('u', 0)]
    """
    return ((topic, number) for topic, numbers in partitions.items() for number in numbers)


def by_topic(partitions: Iterable[Pair]) -> dict[str, list[int]]:
    """Group partitions by topic; topics and partition numbers are ascending.

    Examples
    --------
    >>> by_topic([("t", 1), ("u", 0), ("t", 0)])
    {'t': [0, 1], 'u': [0]}
    """
    gathered: dict[str, list[int]] = {}
    for topic, partition in sorted(partitions):
        gathered.setdefault(topic, []).append(partition)
    return gathered


def partition_counts(
    subscriptions: Iterable[Collection[str]], partitions_for: Callable[[str], set[int] | None]
) -> dict[str, int]:
    """Count the partitions of the subscribed topics; topics that do not exist are left out.

    Parameters
    ----------
    subscriptions
        The topics of each member.
    partitions_for
        Returns the partitions of a topic; None: the topic does not exist.

    Examples
    --------
    >>> partition_counts([["t", "gone"], ["t"]], {"t": {0, 1}}.get)
    {'t': 2}
    """
    topics = sorted({topic for subscription in subscriptions for topic in subscription})
    return {topic: len(known) for topic in topics if (known := partitions_for(topic))}


def partition_for_key(group: str, count: int) -> int:
    """Return the partition that contains a group's records, in a topic of `count` partitions.

    It is the partition that Kafka's default partitioner chooses for the group id as key.

    Examples
    --------
    >>> partition_for_key("orders", 8)
    4
    """
    return partition_of(group.encode(), count)


def kafka_uuid(raw: bytes | str) -> str:
    """Return a 16-byte topic id in Kafka's text form: URL-safe base64 without padding.

    Parameters
    ----------
    raw
        The bytes, or the standard base64 that librdkafka returns.

    Examples
    --------
    >>> kafka_uuid(bytes(range(0xF0, 0x100)))
    '8PHy8_T19vf4-fr7_P3-_w'
    >>> kafka_uuid("8PHy8/T19vf4+fr7/P3+/w")
    '8PHy8_T19vf4-fr7_P3-_w'
    """
    text = raw if isinstance(raw, str) else base64.b64encode(raw).decode()
    return text.rstrip("=").replace("+", "-").replace("/", "_")
