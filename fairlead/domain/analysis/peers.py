"""Reader sets: members that share topics, and so can take over partitions from each other.

Belongs here: sets of members by their subscriptions. Belongs elsewhere: capacities (`capacities`),
and the diagnosis (`diagnosis`).

A *reader set* consists of members that share topics, directly or through other members, and of
these topics with their partitions. No member outside the set subscribes to these topics. The number
of a reader set is the index of its first member. The *peers* of a member are the other members of
its set.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from assignors.problem import Problem
from fairlead.domain.analysis.sample_series import Int32, Mask, Places


@dataclass(frozen=True, eq=False)
class Peers:
    """The reader sets (members that share topics) of M members and P partitions."""

    #: Number of the reader set of each member, int32 of shape (M,), and of each partition, int32 of
    #: shape (P,); -1: no subscriber.
    reader_set: Int32
    of_partition: Int32

    @classmethod
    def of(cls, problem: Problem) -> "Peers":
        """Return the reader sets of a problem. Topics without partitions are ignored.

        Examples
        --------
        >>> members = {"a": ["A"], "b": ["A", "B"], "c": ["C"], "d": ["C"]}
        >>> peers = Peers.of(Problem.of({"A": 2, "B": 2, "C": 2}, members))
        >>> peers.reader_set.tolist(), peers.of_partition.tolist()
        ([0, 0, 2, 2], [0, 0, 0, 0, 2, 2])
        """
        count = len(problem.members)
        member = np.repeat(np.arange(count), np.diff(problem.subscription_offsets))
        topic = problem.subscription_topics
        used = (problem.partition_counts > 0)[topic]
        reader_set, of_topic = reader_sets(count, member[used], topic[used], len(problem.topics))
        return cls(reader_set, of_topic[problem.topic_of])

    def of_member(self, member: int, among: Mask) -> Places:
        """Return the peers of a member that are also in `among`, which is bool of shape (M,)."""
        others = among & (self.reader_set == self.reader_set[member])
        others[member] = False
        return np.flatnonzero(others)


def sole_readers(problem: Problem) -> Iterator[tuple[Mask, Mask]]:
    """Yield each topic's subscribers, with all partitions that only these members may read.

    The subscribers are bool of shape (M,), the partitions bool of shape (P,). Topics with the same
    subscribers are combined. Nothing is yielded if all members have the same subscriptions.

    Examples
    --------
    >>> problem = Problem.of({"A": 2, "B": 2}, {"a": ["A"], "b": ["A", "B"]})
    >>> [(members.tolist(), partitions.tolist()) for members, partitions in sole_readers(problem)]
    [([False, True], [False, False, True, True]), ([True, True], [True, True, True, True])]
    """
    if problem.equal_subscriptions:
        return
    subscribes = np.zeros((len(problem.topics), len(problem.members)), dtype=bool)
    member = np.repeat(np.arange(len(problem.members)), np.diff(problem.subscription_offsets))
    subscribes[problem.subscription_topics, member] = True
    sets, of_topic = np.unique(subscribes, axis=0, return_inverse=True)
    sets_read = sets.any(axis=1)
    beyond = sets.astype(np.float32) @ ~sets.T  # [i, j]: members in set i, not in set j
    for number in np.flatnonzero(sets_read).tolist():
        only = sets_read & (beyond[:, number] == 0)
        yield sets[number], only[of_topic][problem.topic_of]


def reader_sets(
    count: int, member: Places, topic: npt.NDArray[np.integer], topics: int
) -> tuple[Int32, Int32]:
    """Return the reader set of each member, and of each topic; -1: no subscriber.

    `member[i]` subscribes to `topic[i]`: the two arrays have an element for each subscription.
    """
    of_member = np.arange(count, dtype=np.int32)
    while True:
        of_topic = np.full(topics, count, np.int32)
        np.minimum.at(of_topic, topic, of_member[member])
        reached = of_member.copy()
        np.minimum.at(reached, member, of_topic[topic])
        if (reached == of_member).all():
            return of_member, np.where(of_topic < count, of_topic, -1).astype(np.int32)
        of_member = reached
