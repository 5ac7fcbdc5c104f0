"""Range assignment: each topic cut into one contiguous piece a subscriber.

Belongs here: the rule of Kafka's RangeAssignor, its default, without racks. Does not: the order of
members (`problem.member_ring`).
"""

import numpy as np

from assignors.assignment import Assignment
from assignors.problem import Problem, member_ring


def range_(problem: Problem) -> Assignment:
    """Give each subscriber of a topic one contiguous piece, the first ones a partition more.

    Parameters
    ----------
    problem
        P partitions. Weights and current owners are ignored.

    Returns
    -------
    Assignment
        What Kafka's RangeAssignor gives, partition by partition.

    Notes
    -----
    O(P). Topics are cut alike, so with many small topics the first members get much more than the
    last ones.

    Examples
    --------
    >>> range_(Problem.of({"t": 3, "u": 1}, {"a": ["t", "u"], "b": ["t", "u"]})).by_member()
    {'a': {'t': [0, 1], 'u': [0]}, 'b': {'t': [2]}}
    """
    owner = np.full(problem.partition_total, -1, dtype=np.int32)
    rank = np.empty(len(problem.members), dtype=np.int32)
    ring = member_ring(problem)
    rank[ring] = np.arange(ring.size, dtype=np.int32)
    for topic, count in enumerate(problem.partition_counts.tolist()):
        subscribers = problem.subscribers_of(topic)
        if not subscribers.size:
            continue
        in_order = ring[np.sort(rank[subscribers])]
        shares = np.full(in_order.size, count // in_order.size)
        shares[: count % in_order.size] += 1
        first = problem.topic_offsets[topic]
        owner[first : first + count] = np.repeat(in_order, shares)
    return Assignment(problem, owner)
