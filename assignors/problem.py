"""Assignment problems: subscriptions, current owners, and the weight of each partition.

Belongs here: the flat arrays that every assignor works on, and their layout. Belongs elsewhere:
checking a caller's input (`problem_input`), conflicting claims to a partition (`claims`), rules of
assignment (one module each).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from assignors.member import (
    LARGEST_LAG,
    Float64,
    Int32,
    Int64,
    InvalidProblemError,
    Member,
    kafka_order,
)
from assignors.problem_input import read

#: Includes names from `member`, so that importing this module is enough to build a problem.
__all__ = [
    "LARGEST_LAG",
    "Float64",
    "Int32",
    "Int64",
    "InvalidProblemError",
    "Member",
    "Problem",
    "kafka_order",
    "member_ring",
]

# A table of T topics x M members is used if it has no more than this number of cells:
# _CELLS_A_PARTITION x P + _FEW_CELLS.
_CELLS_A_PARTITION, _FEW_CELLS = 8, 100_000


@dataclass(frozen=True, eq=False)
class Problem:
    """One group's assignment problem: P partitions of T topics, M members.

    Partition `p` of topic number `t` has the index `topic_offsets[t] + p` in every per-partition
    array. Use `Problem.of` to build a problem: unlike the constructor, it checks its input.

    Parameters
    ----------
    topics
        T names, in Kafka's (Java's) string order.
    partition_counts
        int64 of shape (T,).
    members
        M member names, in Kafka's string order.
    subscription_offsets, subscription_topics
        The subscriptions as compressed rows: member `m` subscribes to the topics
        `subscription_topics[subscription_offsets[m]:subscription_offsets[m + 1]]`, in ascending
        order. Offsets are int64 of shape (M + 1,), topics int32.
    weights
        Lag of each partition in records, int64 of shape (P,), never negative. The sum of all lags
        may exceed int64.
    owner
        Current owner of each partition after conflicts of claims are resolved, int32 of shape (P,):
        member index, -1 for none. An owner always subscribes to the topic.
    earlier
        Owners in generations older than a partition's newest claim, newest first, int32 of shape
        (R, P): member index, -1 for none. None: no partition has an earlier owner.
    capacities
        float64 of shape (M,), positive.
    instance_ids, racks
        M values each, None if unknown.
    arrival_rates
        Records a second, float64 of shape (P,); None: unknown.
    rack_sets, rack_set_of
        The distinct sets of racks in which replicas are, and the number of each partition's set,
        int32 of shape (P,). `rack_set_of` is None if no replica's rack is known.
    """

    topics: tuple[str, ...]
    partition_counts: Int64
    members: tuple[str, ...]
    subscription_offsets: Int64
    subscription_topics: Int32
    weights: Int64
    owner: Int32
    capacities: Float64
    instance_ids: tuple[str | None, ...]
    racks: tuple[str | None, ...]
    arrival_rates: Float64 | None = None
    earlier: Int32 | None = None
    rack_sets: tuple[frozenset[str], ...] = ()
    rack_set_of: Int32 | None = None

    @classmethod
    def of(
        cls,
        topics: Mapping[str, int],
        members: Mapping[str, Iterable[str] | Member],
        lags: Mapping[str, Sequence[int] | Int64] | None = None,
        *,
        arrival_rates: Mapping[str, Sequence[float] | Float64] | None = None,
        replica_racks: Mapping[str, Sequence[Iterable[str]]] | None = None,
    ) -> "Problem":
        """Build a problem from dictionaries.

        Parameters
        ----------
        topics
            Map from topic to its number of partitions.
        members
            Map from member name to its `Member`, or only to its subscription.
        lags
            Map from topic to the lag of each partition, in records. Missing topics have no lag.
        arrival_rates
            Map from topic to the rate of each partition, in records per second. Missing topics have
            a rate of 0.
        replica_racks
            Map from topic to the racks of each partition's replicas. Racks of missing topics are
            unknown.

        Raises
        ------
        InvalidProblemError
            A value has the wrong type, is out of range, or contradicts another.

        Examples
        --------
        >>> problem = Problem.of({"t": 3}, {"a": ["t"], "b": ["t"]}, {"t": [5, 0, 2]})
        >>> problem.members, problem.weights.tolist()
        (('a', 'b'), [5, 0, 2])
        """
        return cls(**read(topics, members, lags, arrival_rates, replica_racks))

    @property
    def partition_total(self) -> int:
        """P, the number of partitions of all topics."""
        return int(self.topic_offsets[-1])

    @cached_property
    def topic_offsets(self) -> Int64:
        """Index of each topic's partition 0, int64 of shape (T + 1,). The last value is P."""
        return np.concatenate((np.zeros(1, np.int64), np.cumsum(self.partition_counts)))

    @cached_property
    def topic_of(self) -> Int32:
        """Topic number of each partition, int32 of shape (P,)."""
        return np.repeat(np.arange(len(self.topics), dtype=np.int32), self.partition_counts)

    @cached_property
    def subscriber_offsets(self) -> Int64:
        """Index in `subscribers` of each topic's first subscriber, int64 of shape (T + 1,)."""
        return np.concatenate((np.zeros(1, np.int64), np.cumsum(self.subscriber_counts)))

    @cached_property
    def subscribers(self) -> Int32:
        """Subscribers of topic 0 in ascending order, then those of topic 1, and so on; int32."""
        members = np.repeat(
            np.arange(len(self.members), dtype=np.int32), np.diff(self.subscription_offsets)
        )
        return members[np.argsort(self.subscription_topics, kind="stable")]

    @cached_property
    def subscriber_counts(self) -> Int64:
        """Number of subscribers of each topic, int64 of shape (T,)."""
        return np.bincount(self.subscription_topics, minlength=len(self.topics)).astype(np.int64)

    @cached_property
    def equal_subscriptions(self) -> bool:
        """Whether every topic with a partition is read by all members or by none.

        Members that read nothing do not count.
        """
        counts = self.subscriber_counts[self.partition_counts > 0]
        return bool(((counts == 0) | (counts == self.readers.size)).all())

    @cached_property
    def reads(self) -> npt.NDArray[np.bool_]:
        """Whether each member reads each topic, bool of shape (T, M). Use it only if `dense`."""
        table = np.zeros((len(self.topics), len(self.members)), dtype=bool)
        members = np.repeat(np.arange(len(self.members)), np.diff(self.subscription_offsets))
        table[self.subscription_topics, members] = True
        return table

    @property
    def dense(self) -> bool:
        """Whether a table of T topics x M members is small enough, compared to P partitions."""
        size = len(self.topics) * len(self.members)
        return size <= _CELLS_A_PARTITION * self.partition_total + _FEW_CELLS

    @cached_property
    def readers(self) -> Int32:
        """Members that read at least one topic with partitions, ascending, int32."""
        rows: npt.NDArray[Any] = self.subscription_offsets
        if not (self.partition_counts > 0).all():
            used = (self.partition_counts > 0)[self.subscription_topics]
            rows = np.concatenate((np.zeros(1, np.int64), np.cumsum(used)))[rows]
        return np.flatnonzero(np.diff(rows)).astype(np.int32)

    @cached_property
    def assignable(self) -> npt.NDArray[np.bool_]:
        """Whether each partition has a subscriber, bool of shape (P,)."""
        return np.repeat(self.subscriber_counts > 0, self.partition_counts)

    @cached_property
    def near(self) -> npt.NDArray[np.bool_]:
        """Whether each set of replica racks contains each member's rack, bool of shape (S, M)."""
        sets = self.rack_sets or (frozenset(),)
        rows = [[rack in replicas for rack in self.racks] for replicas in sets]
        return np.array(rows, dtype=bool)

    @cached_property
    def far(self) -> npt.NDArray[np.bool_]:
        """Whether each set of replica racks lacks each member's rack, bool of shape (S, M).

        False if the racks of the set or of the member are unknown.
        """
        known = np.array([[bool(replicas)] for replicas in self.rack_sets or (frozenset(),)])
        far: npt.NDArray[np.bool_] = (
            known & np.array([bool(rack) for rack in self.racks]) & ~self.near
        )
        return far

    @cached_property
    def exact_weights(self) -> npt.NDArray[Any]:
        """`weights` in a type whose sums are exact: int64, or Python ints if int64 may overflow."""
        total_is_safe = self.weights.astype(np.float64).sum() < LARGEST_LAG / 2
        return self.weights if total_is_safe else self.weights.astype(object)

    def subscribers_of(self, topic: int) -> Int32:
        """Members that subscribe to a topic, ascending, int32."""
        first, last = self.subscriber_offsets[topic : topic + 2]
        return self.subscribers[first:last]

    def partition_name(self, index: int) -> tuple[str, int]:
        """Return the topic and partition number of a partition index."""
        topic = int(np.searchsorted(self.topic_offsets, index, side="right")) - 1
        return self.topics[topic], index - int(self.topic_offsets[topic])

    def partition_label(self, index: int) -> str:
        """Return the name of the partition with this index, such as orders-3."""
        return "{}-{}".format(*self.partition_name(index))


def member_ring(problem: Problem) -> Int32:
    """Return member indices in the order of Kafka's `range` and `roundrobin`, shape (M,).

    Static members come first, by instance id, then the others by name (`MemberInfo.compareTo`).
    """

    def key(member: int) -> tuple[bool, bytes]:
        instance_id = problem.instance_ids[member]
        name = problem.members[member] if instance_id is None else instance_id
        return instance_id is None, kafka_order(name)

    if not any(problem.instance_ids):
        return np.arange(len(problem.members), dtype=np.int32)
    return np.array(sorted(range(len(problem.members)), key=key), dtype=np.int32)
