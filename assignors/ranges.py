"""Range assignment: each topic is cut into one contiguous piece per subscriber.

Belongs here: the rule of RangeAssignor, Kafka's default. Belongs elsewhere: the effect of racks
(`ranges_by_rack`), the order of members (`problem.member_ring`).
"""

import numpy as np

from assignors import ranges_by_rack
from assignors.assignment import Assignment
from assignors.problem import Int32, Int64, Problem, member_ring


def range_(problem: Problem) -> Assignment:
    """Give each subscriber of a topic one contiguous piece; the first pieces may be larger by one.

    Parameters
    ----------
    problem
        P partitions. Weights and current owners are ignored. Racks do not change how many
        partitions a member gets, but it gets those with a replica in its rack first (KIP-881).

    Returns
    -------
    Assignment
        Every partition has the same owner as with Kafka's RangeAssignor.

    Notes
    -----
    O(P); with racks, times the number of racks of a partition's replicas. All topics are cut in the
    same way, so with many small topics the first members get much more than the last ones.

    Examples
    --------
    >>> range_(Problem.of({"t": 3, "u": 1}, {"a": ["t", "u"], "b": ["t", "u"]})).by_member()
    {'a': {'t': [0, 1], 'u': [0]}, 'b': {'t': [2]}}
    """
    matched = ranges_by_rack.match(problem)
    owner = np.full(problem.partition_total, -1, dtype=np.int32) if matched is None else matched
    rank = np.empty(len(problem.members), dtype=np.int32)
    ring = member_ring(problem)
    rank[ring] = np.arange(ring.size, dtype=np.int32)
    for topic, count in enumerate(problem.partition_counts.tolist()):
        subscribers = problem.subscribers_of(topic)
        if not subscribers.size:
            continue
        in_order = ring[np.sort(rank[subscribers])]
        first = int(problem.topic_offsets[topic])
        part = owner[first : first + count]
        if matched is None:
            part[:] = np.repeat(in_order, _even(count, in_order.size))
        else:
            part[part < 0] = np.repeat(in_order, _left_to(part, in_order, count))
    return Assignment(problem, owner)


def _even(count: int, members: int) -> Int64:
    """Return the sizes of a topic's pieces, int64 of shape (M,); the first may be larger by one."""
    shares = np.full(members, count // members)
    shares[: count % members] += 1
    return shares


def _left_to(part: Int32, subscribers: Int32, count: int) -> Int64:
    """Return the number of a topic's unowned partitions that each subscriber gets.

    Parameters
    ----------
    part
        Owners of the topic's partitions so far, int32 of shape (N,), -1 for none.
    subscribers
        The topic's subscribers; if some get one partition more, the first ones do.
    count
        N, the number of the topic's partitions.
    """
    share, larger = divmod(count, subscribers.size)
    has = np.bincount(part[part >= 0], minlength=int(subscribers.max()) + 1)[subscribers]
    open_ = has <= share
    more = open_ & (np.cumsum(open_) <= larger - np.count_nonzero(~open_))
    return np.where(open_, share - has + more, 0).astype(np.int64)
