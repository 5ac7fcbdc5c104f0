"""What a greedy dealer gives a group in which nobody owns anything: the usual one of equal optima.

Belongs here: the deals that Kafka's sticky assignor makes, and whether one is as good as the best
assignment. Does not: finding the best one (`aims`).

The best in all of `sticky`'s aims is seldom one assignment. A solver takes any; the one that people
know from Kafka is the one to take where it is among them.
"""

import numpy as np

from assignors.assignment import Assignment
from assignors.problem import Int32, Problem
from assignors.racks import far_partitions, in_replica_rack
from assignors.spread import pairs, worst


def usual(problem: Problem, best: Int32, plain: Int32) -> Int32:
    """Return a greedy deal that is as good as the best assignment in each aim, or that one.

    Parameters
    ----------
    problem
        P partitions. Where somebody owns or owned any, the best assignment is returned.
    best
        int32 of shape (P,), best in all aims of `sticky`.
    plain
        A deal that knows of no racks, int32 of shape (P,): what is tried first.
    """
    if (problem.owner >= 0).any() or problem.earlier is not None:
        return best
    value = _value(problem, best)
    if _value(problem, plain) == value:
        return plain
    if problem.rack_set_of is not None:
        near = _near_first(problem)
        if _value(problem, near) == value:
            return near
    return best


def _value(problem: Problem, owner: Int32) -> tuple[object, ...]:
    """All aims that count where nobody owns anything: loads, spread, racks."""
    share, even = worst(problem, owner)
    sizes = pairs(problem, owner).size
    return (
        np.sort(Assignment(problem, owner).counts).tolist(),
        share / even,
        -sizes.size,
        int(np.dot(sizes, sizes)),
        int(far_partitions(problem, owner).sum()),
    )


def _near_first(problem: Problem) -> Int32:
    """Deal what has a replica near, then the rest, then hand on what makes loads even.

    The topics with the fewest subscribers first, each partition to whoever has least.
    """
    loads = np.zeros(len(problem.members), dtype=np.int64)
    owner = np.full(problem.partition_total, -1, dtype=np.int32)
    topics = np.lexsort((-problem.partition_counts, problem.subscriber_counts))
    order = np.concatenate([np.arange(*problem.topic_offsets[t : t + 2]) for t in topics.tolist()])
    order = order[problem.assignable[order]]
    readers = [problem.subscribers_of(topic) for topic in range(len(problem.topics))]
    for only_near in (True, False):
        for partition in order[owner[order] < 0].tolist():
            takers = readers[problem.topic_of[partition]]
            if only_near:
                takers = takers[in_replica_rack(problem, np.array([partition]), takers)]
            if takers.size:
                owner[partition] = takers[np.argmin(loads[takers])]
                loads[owner[partition]] += 1
    handed_on = True
    while handed_on:
        handed_on = False
        for partition in order.tolist():
            takers, giver = readers[problem.topic_of[partition]], owner[partition]
            taker = takers[np.argmin(loads[takers])]
            if loads[giver] > loads[taker] + 1:
                owner[partition], handed_on = taker, True
                loads[giver] -= 1
                loads[taker] += 1
    return owner
