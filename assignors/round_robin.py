"""Round-robin assignment: all partitions in order, each to the next member on a ring.

Belongs here: the rule of Kafka's RoundRobinAssignor. Belongs elsewhere: the order of members
(`problem.member_ring`).
"""

import numpy as np

from assignors.assignment import Assignment
from assignors.problem import Problem, member_ring


def round_robin(problem: Problem) -> Assignment:
    """Give each partition, in order of topic and number, to the next member that subscribes to it.

    After the last member, the first one is next.

    Parameters
    ----------
    problem
        P partitions of T topics. Weights and current owners are ignored.

    Returns
    -------
    Assignment
        Every partition has the same owner as with Kafka's RoundRobinAssignor.

    Notes
    -----
    O(P + subscriptions log M). With equal subscriptions, counts differ by at most one. With
    different subscriptions, one member can get almost everything.

    Examples
    --------
    >>> round_robin(Problem.of({"t": 3, "u": 1}, {"a": ["t", "u"], "b": ["t", "u"]})).by_member()
    {'a': {'t': [0, 2]}, 'b': {'t': [1], 'u': [0]}}
    """
    owner = np.full(problem.partition_total, -1, dtype=np.int32)
    ring = member_ring(problem)
    rank = np.empty(ring.size, dtype=np.int32)
    rank[ring] = np.arange(ring.size, dtype=np.int32)
    place = 0
    for topic, count in enumerate(problem.partition_counts.tolist()):
        subscribers = problem.subscribers_of(topic)
        if not (subscribers.size and count):
            continue
        places = np.sort(rank[subscribers])
        start = int(np.searchsorted(places, place))
        dealt = places[(start + np.arange(count)) % places.size]
        first = problem.topic_offsets[topic]
        owner[first : first + count] = ring[dealt]
        place = int(dealt[-1]) + 1
    return Assignment(problem, owner)
