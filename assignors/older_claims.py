"""Give partitions back to earlier owners, if no current owner keeps them.

Belongs here: this aim of `sticky`. Belongs elsewhere: the order of claims (`claims`), other aims.
"""

from collections import Counter

import numpy as np

from assignors.problem import Int32, Problem


def give_back(problem: Problem, owner: Int32) -> Int32:
    """Exchange moved and placed partitions within each topic, to give them to earlier owners.

    Kept partitions stay with their owners, and each member has as many partitions of each topic as
    before. As many partitions as possible return to their newest earlier owner, then to the owner
    before that one, and so on.

    Parameters
    ----------
    problem
        P partitions.
    owner
        Owners before the exchanges, int32 of shape (P,).
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
