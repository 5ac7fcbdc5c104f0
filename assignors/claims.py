"""Whose claim to a partition counts.

Belongs here: the conflict rules between members that claim the same partition. Does not: reading
the claims (`reading`, `user_data`).
"""

import numpy as np
import numpy.typing as npt

from assignors.problem import Int32, Int64


def effective_owner(
    partitions: Int64, members: Int32, generations: Int64, *, partition_total: int
) -> Int32:
    """Settle claims: the highest generation wins; where two share it, nobody does.

    A member that slept through a rebalance still claims what others own by now; its generation
    gives it away. Equal generations cannot both be right, and nothing says which one is.

    Parameters
    ----------
    partitions, members, generations
        One claim an element, shape (K,): partition index, member index, generation of the claim.
    partition_total
        P.

    Returns
    -------
    int32 array of shape (P,): member index, -1 where no claim holds.

    Examples
    --------
    >>> claims = (np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1], np.int32), np.array([4, 5, 5, 5]))
    >>> effective_owner(*claims, partition_total=3).tolist()
    [1, -1, -1]
    """
    owner = np.full(partition_total, -1, dtype=np.int32)
    newest = np.full(partition_total, np.iinfo(np.int64).min, dtype=np.int64)
    np.maximum.at(newest, partitions, generations)
    holds: npt.NDArray[np.bool_] = generations == newest[partitions]
    claimed, rivals = partitions[holds], members[holds]
    alone = np.bincount(claimed, minlength=partition_total)[claimed] == 1
    owner[claimed[alone]] = rivals[alone]
    return owner
