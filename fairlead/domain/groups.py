"""Consumer groups, members, commits and log offsets, as brokers return them.

Belongs here: the values. Belongs elsewhere: requests to brokers (`fairlead.kafka`), and the sample
table.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fairlead.domain.advice import CLASSIC


class TopicCommits(NamedTuple):
    """Commits of a group for K partitions of one topic.

    Parameters
    ----------
    partitions, offsets
        Partition numbers and committed offsets, both of shape (K,) and not negative.
    metadata
        The metadata string of each commit, as bytes; empty if there is none.
    """

    partitions: npt.NDArray[np.int32]
    offsets: npt.NDArray[np.int64]
    metadata: Sequence[bytes]


#: Maps each topic to its commits.
CommittedOffsets = Mapping[str, TopicCommits]


@dataclass(frozen=True)
class LiveMember:
    """One member of a consumer group.

    Parameters
    ----------
    member_id, client_id, instance_id
        As the coordinator returns them. `instance_id` is the `group.instance.id` of a static
        member.
    name
        Name in plans: the instance id, else a client id unique in the group, else the member id.
    topics
        Subscribed topics, ascending.
    partitions
        Maps each topic to the numbers of the owned partitions, ascending.
    generation
        Generation in which the member last owned partitions, if its protocol version reports it. If
        the broker assigns partitions: the member's epoch.
    rack
        `client.rack`, if the member's protocol version reports it (KIP-881).
    """

    member_id: str
    client_id: str
    instance_id: str | None
    name: str
    topics: tuple[str, ...]
    partitions: Mapping[str, tuple[int, ...]]
    generation: int | None
    rack: str | None = None


class GroupProblem(Enum):
    """Errors of a group that the planner distinguishes, because it handles them differently."""

    #: The group does not exist (any more).
    ABSENT = "absent"
    REBALANCING = "rebalancing"
    #: The coordinator is being moved, or is loading its state.
    COORDINATOR_MOVING = "coordinator moving"
    #: The broker that was asked is no longer the group's coordinator.
    NOT_COORDINATOR = "not the coordinator"
    #: The coordinator returned any other error.
    NOT_DESCRIBED = "not described"
    #: The group uses the consumer protocol, and the request was for the classic one, or vice versa.
    OTHER_TYPE = "other type"


@dataclass(frozen=True)
class GroupDescription:
    """Description of a consumer group.

    Parameters
    ----------
    group, state, protocol
        As returned by the coordinator: id; state (`Stable`, `Empty`, ...); name of the assignor.
    members
        Ascending by name. Known only in the states `Stable` and `Empty`.
    error
        Why the group cannot be planned now; None if it can.
    problem
        The kind of the error, if the planner handles this kind differently; else None.
    group_type
        `classic` or `consumer`.
    topic_ids
        Maps each topic to its id as text, if the coordinator returns ids. Assignors in brokers use
        ids, not names.
    """

    group: str
    state: str
    protocol: str
    members: tuple[LiveMember, ...] = ()
    error: str | None = None
    problem: GroupProblem | None = None
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
        Groups that commit offsets without consumers; ascending.
    others
        Kind of group (`share`, `streams`, `connect`, ...) to the number of such groups.
    """

    consumer: Sequence[str]
    memberless: Sequence[str] = ()
    others: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class LiveGroup:
    """A group as it is now, without its committed offsets.

    Parameters
    ----------
    group, state, protocol
        The group's id; `Stable` or `Empty`; the name of the assignor in use.
    members
        Ascending by name.
    partition_counts
        Maps each existing topic with a subscriber to its number of partitions.
    observed_at
        Time of the request; time-zone-aware.
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
    """Log offsets of all P partitions of some topics.

    Parameters
    ----------
    starts
        Maps each topic to the index of its partition 0 in the arrays; topics that do not exist are
        missing.
    counts
        Maps each topic to its number of partitions.
    begin, end
        Log start offset and high watermark, int64 of shape (P,); -1: could not be read.
    unreadable
        Maps each existing topic with partitions that could not be read to the reason.
    """

    starts: Mapping[str, int]
    counts: Mapping[str, int]
    begin: npt.NDArray[np.int64]
    end: npt.NDArray[np.int64]
    unreadable: Mapping[str, str]

    def place(self, topic: str) -> tuple[int, int]:
        """Return the index of a topic's first partition, and its number of partitions."""
        return self.starts.get(topic, 0), self.counts.get(topic, 0)


@dataclass(frozen=True, eq=False)
class FetchSources:
    """Racks from which P partitions can be fetched, and sizes of their logs.

    Parameters
    ----------
    rack_sets
        Distinct sets of racks, each ascending.
    rack_set
        For each partition, the index in `rack_sets` of the racks from which it can be fetched,
        int32 of shape (P,), in the order of `LogOffsets`; -1: not known.
    log_bytes
        Size of each partition's log on its leader, in bytes, int64 of shape (P,); -1: not known.
    """

    rack_sets: Sequence[tuple[str, ...]]
    rack_set: npt.NDArray[np.int32]
    log_bytes: npt.NDArray[np.int64]
