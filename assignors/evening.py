"""Evening out partition counts with the least harm to lag balance.

Belongs here: which partitions leave the members that have too many, and who takes which, once it
is known how many of each topic. Does not: how many (`sticky`), nor what follows (`relief`).
"""

import numpy as np

from assignors.problem import Float64, Int32, Int64, Problem


def choose_by_load(problem: Problem, even: Int32, weights: Float64) -> Int32:
    """Choose anew which partitions an evened assignment takes from whom, and gives to whom.

    Partitions of one topic differ in weight alone: how many of them each member gives and takes
    stays, and with it every count and the number of moves.

    Parameters
    ----------
    problem
        P partitions, M members; its owners are where the partitions come from.
    even
        Owners after evening out, int32 of shape (P,).
    weights
        Work of each partition, float64 of shape (P,).

    Returns
    -------
    Owners, int32 of shape (P,).

    Notes
    -----
    A member gives its heaviest partitions that fit into what it has beyond its fair load, else its
    lightest; they go, heaviest first, to the least loaded member with a place for their topic.
    O(P log P + K M) for K moves.
    """
    moved = np.flatnonzero((problem.owner >= 0) & (even != problem.owner))
    if not moved.size:
        return even
    owner = even.copy()
    owner[moved] = problem.owner[moved]
    owned = np.flatnonzero(problem.owner >= 0)
    work = weights[owned]
    loads = np.bincount(problem.owner[owned], weights=work, minlength=len(problem.members))
    fair = weights.sum() / problem.capacities.sum() * problem.capacities
    released = _release(problem, moved, weights, loads - fair)
    np.subtract.at(loads, problem.owner[released], weights[released])
    places = _places(problem, even, moved)
    for partition in released[np.argsort(-weights[released], kind="stable")].tolist():
        members, free = places[int(problem.topic_of[partition])]
        relative = np.where(free > 0, loads[members] / problem.capacities[members], np.inf)
        chosen = int(np.argmin(relative))
        free[chosen] -= 1
        owner[partition] = members[chosen]
        loads[members[chosen]] += weights[partition]
    return owner


def _release(problem: Problem, moved: Int64, weights: Float64, excess: Float64) -> Int64:
    """Choose, for each member and topic, as many partitions as `moved` has of them."""
    pair = problem.topic_of.astype(np.int64) * len(problem.members) + problem.owner
    pairs, needed = np.unique(pair[moved], return_counts=True)
    pool = np.flatnonzero((problem.owner >= 0) & np.isin(pair, pairs))
    pool = pool[np.lexsort((pool, -weights[pool], pair[pool]))]
    pools = np.split(pool, np.flatnonzero(np.diff(pair[pool])) + 1)
    left = excess.copy()
    chosen: list[int] = []
    for partitions, count in zip(pools, needed.tolist(), strict=True):
        member = int(problem.owner[partitions[0]])
        missing = count
        for rest, partition in zip(range(partitions.size, 0, -1), partitions.tolist(), strict=True):
            if missing and (weights[partition] <= left[member] or rest == missing):
                chosen.append(partition)
                left[member] -= weights[partition]
                missing -= 1
    return np.array(chosen, dtype=np.int64)


def _places(problem: Problem, even: Int32, moved: Int64) -> dict[int, tuple[Int64, Int64]]:
    """Count, by topic, how many moved partitions each member takes: members and their places."""
    topics = problem.topic_of[moved]
    return {
        int(topic): np.unique(even[moved[topics == topic]].astype(np.int64), return_counts=True)
        for topic in np.unique(topics)
    }
