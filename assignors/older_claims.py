"""Giving partitions back to who owned them before, where no newer claim decides.

Belongs here: the last of `sticky`'s aims. Does not: whose claims count, and in which order
(`claims`), nor any aim above it.
"""

from collections import Counter

import numpy as np

from assignors.problem import Int32, Problem


def give_back(problem: Problem, owner: Int32) -> Int32:
    """Deal what each topic's members did not own before so that earlier owners get theirs back.

    Nobody's share of a topic changes, nor what is kept. The newest of the earlier claims comes
    first; within a topic, as many of those are heard as can be, then of the next ones.

    Parameters
    ----------
    problem
        P partitions.
    owner
        int32 of shape (P,): who is to own how many of each topic.
    """
    if problem.earlier is None:
        return owner
    free = (owner >= 0) & (owner != problem.owner)
    given = np.full_like(owner, -1)
    members = np.int64(len(problem.members))
    room = Counter((problem.topic_of[free] * members + owner[free]).tolist())
    for claimants in problem.earlier:
        claimed = np.flatnonzero(free & (given < 0) & (claimants >= 0))
        pairs = problem.topic_of[claimed] * members + claimants[claimed]
        for partition, pair in zip(claimed.tolist(), pairs.tolist(), strict=True):
            if room[pair] > 0:
                room[pair] -= 1
                given[partition] = pair % members
    rest = np.flatnonzero(free & (given < 0))
    given[rest] = [pair % members for pair in sorted(room.elements())]
    return np.where(free, given, owner).astype(np.int32)
