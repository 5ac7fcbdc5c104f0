"""Owners, loads and counts during planning.

Belongs here: the state that `placement` and `relief` change, and limits on it. Belongs elsewhere:
choosing moves.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from assignors.problem import Float64, Int32, Int64, Problem

Mask = npt.NDArray[np.bool_]
NO_LIMIT = np.iinfo(np.int64).max // 2


@dataclass(frozen=True, eq=False)
class Limits:
    """Limits on the partitions of members.

    Parameters
    ----------
    fewest, most
        Minimum and maximum number of partitions of each member, all topics together, int64 of shape
        (M,). If a member is outside its limits, a step may only bring it closer to them.
    most_of_topic
        Maximum number of partitions of each topic on a single member, int64 of shape (T,).
    """

    fewest: Int64
    most: Int64
    most_of_topic: Int64

    @classmethod
    def none(cls, problem: Problem) -> "Limits":
        """Return limits that allow every assignment."""
        members, topics = len(problem.members), len(problem.topics)
        return cls(
            fewest=np.zeros(members, np.int64),
            most=np.full(members, NO_LIMIT),
            most_of_topic=np.full(topics, NO_LIMIT),
        )


class Ledger:
    """The owners of all partitions, with loads and counts kept up to date.

    Parameters
    ----------
    problem
        P partitions, M members.
    owner
        int32 of shape (P,), copied.
    weights
        Load of each partition, float64 of shape (P,).
    limits
        Limits for `has_room` and `with_topic_room`.
    """

    def __init__(self, problem: Problem, owner: Int32, weights: Float64, limits: Limits) -> None:
        members = len(problem.members)
        owned = owner >= 0
        self.problem = problem
        self.weights = weights
        self.limits = limits
        self.owner = owner.copy()
        self.counts = np.bincount(owner[owned], minlength=members).astype(np.int64)
        work = np.bincount(owner[owned], weights=weights[owned], minlength=members)
        self.loads: Float64 = work / problem.capacities
        self.limits_topics = bool((limits.most_of_topic < NO_LIMIT).any())
        self._topic_counts: dict[int, Int64] = {}
        self._neighbours: dict[int, Mask] = {}

    def give(self, partition: int, member: int) -> None:
        """Assign a partition to a member, and take it from its present owner, if any."""
        topic_counts = self._topic_counts_of(int(self.problem.topic_of[partition]))
        for holder, sign in ((int(self.owner[partition]), -1), (member, 1)):
            if holder >= 0:
                self.counts[holder] += sign
                self.loads[holder] += sign * self.weights[partition] / self.capacity(holder)
                if self.limits_topics:
                    topic_counts[holder] += sign
        self.owner[partition] = member

    def receive(self, partitions: Int64, members: Int32) -> None:
        """Assign partitions without an owner, each to the member at the same index of `members`."""
        self.owner[partitions] = members
        size = self.counts.size
        work = np.bincount(members, weights=self.weights[partitions], minlength=size)
        self.counts += np.bincount(members, minlength=size)
        self.loads += work / self.problem.capacities
        self._topic_counts.clear()

    def capacity(self, member: int) -> float:
        """Return a member's capacity."""
        return float(self.problem.capacities[member])

    def reads(self, member: int, topics: Int32) -> Mask:
        """Return whether a member subscribes to each topic in `topics`, bool of the same shape."""
        if self.problem.equal_subscriptions:
            return np.ones(topics.size, dtype=bool)
        first, last = self.problem.subscription_offsets[member : member + 2]
        mine = self.problem.subscription_topics[first:last]
        at = np.minimum(np.searchsorted(mine, topics), max(mine.size - 1, 0))
        return mine[at] == topics if mine.size else np.zeros(topics.size, dtype=bool)

    def with_topic_room(self, member: int, partitions: Int64) -> Int64:
        """Return those partitions that topic limits allow the member to receive."""
        if not self.limits_topics:
            return partitions
        kinds, inverse = np.unique(self.problem.topic_of[partitions], return_inverse=True)
        counts = np.array([self._topic_counts_of(int(topic))[member] for topic in kinds], np.int64)
        return partitions[(counts < self.limits.most_of_topic[kinds])[inverse]]

    def has_room(self, topic: int, members: Int32) -> Mask:
        """Return whether each member's limits allow one more partition of a topic."""
        room: Mask = self.counts[members] < self.limits.most[members]
        if self.limits_topics:
            room &= self._topic_counts_of(topic)[members] < self.limits.most_of_topic[topic]
        return room

    def neighbours(self, member: int) -> Mask:
        """Return the other members that share a topic with a member, bool of shape (M,)."""
        problem = self.problem
        if problem.equal_subscriptions:
            mask = np.zeros(len(problem.members), dtype=bool)
            mask[problem.readers] = True
            mask[member] = False
            return mask
        if member not in self._neighbours:
            first, last = problem.subscription_offsets[member : member + 2]
            shared = np.zeros(len(problem.topics), dtype=bool)
            shared[problem.subscription_topics[first:last]] = True
            mask = np.zeros(len(problem.members), dtype=bool)
            mask[problem.subscribers[np.repeat(shared, problem.subscriber_counts)]] = True
            mask[member] = False
            self._neighbours[member] = mask
        return self._neighbours[member]

    def _topic_counts_of(self, topic: int) -> Int64:
        """Return each member's number of partitions of a topic, counted on first use."""
        if self.limits_topics and topic not in self._topic_counts:
            first, last = self.problem.topic_offsets[topic : topic + 2]
            owners = self.owner[first:last]
            self._topic_counts[topic] = np.bincount(
                owners[owners >= 0], minlength=len(self.problem.members)
            ).astype(np.int64)
        return self._topic_counts.get(topic, np.empty(0, np.int64))
