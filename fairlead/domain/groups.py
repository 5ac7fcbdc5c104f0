"""What Kafka tells of consumer groups: their members, what those own, and where logs stand.

Belongs here: values. Does not: asking brokers for them (`fairlead.kafka`), nor the table made of
them (`samples`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fairlead.domain.advice import CLASSIC


class TopicCommits(NamedTuple):
    """What a group has committed of one topic, a partition at each position.

    Parameters
    ----------
    partitions, offsets
        Partition numbers and committed offsets, both of shape (K,), none below zero.
    metadata
        The string stored with each commit, as Kafka stores it; b"" if there is none.
    """

    partitions: npt.NDArray[np.int32]
    offsets: npt.NDArray[np.int64]
    metadata: Sequence[bytes]


CommittedOffsets = Mapping[str, TopicCommits]
"""Topic to its commits."""


@dataclass(frozen=True)
class LiveMember:
    """One member of a consumer group.

    Parameters
    ----------
    member_id, client_id, host, instance_id
        As the coordinator knows it; `instance_id` is `group.instance.id` of static members.
    name
        What plans call it: the instance id, else a client id unique in the group, else the member
        id.
    topics
        Its subscription, ascending; empty: it reads nothing.
    partitions
        What it owns: topic to partition numbers, ascending.
    generation
        The generation in which it last owned partitions, where its protocol version tells; where
        the broker assigns, the group's epoch that the member has reached.
    rack
        `client.rack`, where its protocol version tells (KIP-881).
    """

    member_id: str
    client_id: str
    host: str
    instance_id: str | None
    name: str
    topics: tuple[str, ...]
    partitions: Mapping[str, tuple[int, ...]]
    generation: int | None
    rack: str | None = None


@dataclass(frozen=True)
class GroupDescription:
    """One consumer group at one moment.

    Parameters
    ----------
    group, state, protocol_type, protocol
        As the coordinator says: `Stable`, `Empty`, ...; `consumer`; the assignor's name.
    members
        Ascending by name. Known in the states `Stable` and `Empty` alone.
    error
        Why the group cannot be planned now; None: it can.
    group_type
        `classic` or `consumer`.
    topic_ids
        Topic to its id, as Kafka writes it, where the coordinator tells: for who assigns in a
        broker, and knows no names.
    """

    group: str
    state: str
    protocol_type: str
    protocol: str
    members: tuple[LiveMember, ...] = ()
    error: str | None = None
    group_type: str = CLASSIC
    topic_ids: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ListedGroups:
    """The groups of a cluster.

    Parameters
    ----------
    consumer
        Consumer groups, with or without members; ascending.
    memberless
        Groups that commit offsets, and that no consumer ever joined; ascending.
    others
        How many there are of every other kind: `share`, `streams`, `connect`, ...
    """

    consumer: Sequence[str]
    memberless: Sequence[str] = ()
    others: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class LiveGroup:
    """A group as it is now, whatever its commits.

    Parameters
    ----------
    group, state, protocol
        Its id; `Stable` or `Empty`; the assignor in use.
    members
        Ascending by name.
    partition_counts
        Topic to number of partitions, of the topics that some member subscribes to and that exist.
    observed_at
        When it was asked for; time-zone-aware.
    group_type
        `classic` or `consumer`.
    """

    group: str
    state: str
    protocol: str
    members: tuple[LiveMember, ...]
    partition_counts: Mapping[str, int]
    observed_at: datetime
    group_type: str = CLASSIC


@dataclass(frozen=True, eq=False)
class LogOffsets:
    """Begin and end of the partitions of some topics: P partitions in all.

    Parameters
    ----------
    starts
        Topic to where its partition 0 stands in the arrays; topics that do not exist are missing.
    counts
        Topic to number of partitions.
    begin, end
        Log start offset, and high watermark, int64 of shape (P,); -1 where it could not be read.
    unreadable
        Topic to why (some of) its partitions could not be read, although the topic exists.
    """

    starts: Mapping[str, int]
    counts: Mapping[str, int]
    begin: npt.NDArray[np.int64]
    end: npt.NDArray[np.int64]
    unreadable: Mapping[str, str]

    def place(self, topic: str) -> tuple[int, int]:
        """Return where a topic's partitions stand in the arrays, and how many there are."""
        return self.starts.get(topic, 0), self.counts.get(topic, 0)


@dataclass(frozen=True, eq=False)
class FetchSources:
    """Where consumers fetch partitions from, and how large their logs are: P partitions.

    Parameters
    ----------
    rack_sets
        Sets of racks, ascending each.
    rack_set
        The set of racks of the brokers that a consumer may fetch a partition from, int32 of shape
        (P,), in the order of `LogOffsets`; -1: not known.
    log_bytes
        Size of the log as its leader keeps it, int64 of shape (P,); -1: not known.
    """

    rack_sets: Sequence[tuple[str, ...]]
    rack_set: npt.NDArray[np.int32]
    log_bytes: npt.NDArray[np.int64]
