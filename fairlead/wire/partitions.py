"""Partitions as clients name them, gathered the way rules and logs want them.

Belongs here: what every client's module has to rearrange, and the partition of the plan topic that
a group's key goes to. Does not: who reads what.
"""

import base64
from collections.abc import Callable, Collection, Iterable

from assignors.partitioner import partition_of


def by_topic(partitions: Iterable[tuple[str, int]]) -> dict[str, list[int]]:
    """Gather partitions by topic, both ascending.

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
        Tells the partitions of a topic; None: there is no such topic.

    Examples
    --------
    >>> partition_counts([["t", "gone"], ["t"]], {"t": {0, 1}}.get)
    {'t': 2}
    """
    topics = sorted({topic for subscription in subscriptions for topic in subscription})
    return {topic: len(known) for topic in topics if (known := partitions_for(topic))}


def partition_for_key(group: str, count: int) -> int:
    """Return the partition, of `count`, in which the records of a group stand.

    It is where any producer's default partitioner puts the group's key: the others need not be
    read.

    Examples
    --------
    >>> partition_for_key("orders", 8)
    4
    """
    return partition_of(group.encode(), count)


def kafka_uuid(raw: bytes | str) -> str:
    """Write an id of 16 bytes as Kafka writes the ids of topics: base64 for URLs, without padding.

    Parameters
    ----------
    raw
        The bytes; or text as librdkafka writes it, which is base64 of the other alphabet.

    Examples
    --------
    >>> kafka_uuid(bytes(range(0xF0, 0x100)))
    '8PHy8_T19vf4-fr7_P3-_w'
    >>> kafka_uuid("8PHy8/T19vf4+fr7/P3+/w")
    '8PHy8_T19vf4-fr7_P3-_w'
    """
    text = raw if isinstance(raw, str) else base64.b64encode(raw).decode()
    return text.rstrip("=").replace("+", "-").replace("/", "_")
