"""Greedy assignments, preferred for new groups if no other assignment is better.

In a new group, no partition has or had an owner.

Belongs here: assignments that Kafka's sticky assignor makes, and whether they are optimal. Belongs
elsewhere: finding an optimal assignment (`aims`).

Usually several assignments are optimal in all of `sticky`'s aims, and a solver returns one of them
arbitrarily. This module prefers the assignment that users know from Kafka.
"""

import numpy as np

from assignors.assignment import Assignment
from assignors.problem import Int32, Problem
from assignors.racks import far_partitions, in_replica_rack
from assignors.spread import pairs, worst


def usual(problem: Problem, best: Int32, plain: Int32) -> Int32:
    """Return a greedy assignment if it is as good as `best` in every aim, else `best`.

    Parameters
    ----------
    problem
        P partitions. If at least one of them has or had an owner, `best` is returned.
    best
        Owners that are optimal in all aims of `sticky`, int32 of shape (P,).
    plain
        Owners of a greedy assignment that ignores racks, int32 of shape (P,). It is tried first.
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
    """Return the values to minimise, the most important first: loads, spread, cross-rack reads."""
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
    """Assign partitions greedily, each to a member in the rack of a replica if there is one.

    First, partitions for which there is such a member; second, all others; last, loads are evened
    out. Topics with the fewest subscribers come first; each partition goes to the least loaded
    member.
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
    changed = True
    while changed:
        changed = False
        for partition in order.tolist():
            takers, giver = readers[problem.topic_of[partition]], owner[partition]
            taker = takers[np.argmin(loads[takers])]
            if loads[giver] > loads[taker] + 1:
                owner[partition], changed = taker, True
                loads[giver] -= 1
                loads[taker] += 1
    return owner
