"""Owners of partitions according to the members' claims, now and in earlier generations.

A claim is a member's statement at a rebalance that it owned a partition in some generation.

Belongs here: which claim wins if several members claim the same partition. Belongs elsewhere:
reading claims (`problem_input`, `user_data`), and assigning by older claims (`older_claims`).
"""

import numpy as np
import numpy.typing as npt

from assignors.member import Int32, Int64
from assignors.numbering import within_groups


def effective_owner(
    partitions: Int64, members: Int32, generations: Int64, *, partition_total: int
) -> Int32:
    """Return each partition's owner: the member that claims it with the highest generation.

    A member that missed a rebalance still claims partitions that other members own now, but with an
    older generation. If two claims have the highest generation, the partition has no owner: at most
    one of the claims is right, and it is unknown which.

    Parameters
    ----------
    partitions, members, generations
        Partition index, member index and generation of each of K claims, shape (K,).
    partition_total
        P.

    Returns
    -------
    int32 array of shape (P,): member index, or -1 for no owner.

    Examples
    --------
    >>> claims = (np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1], np.int32), np.array([4, 5, 5, 5]))
    >>> effective_owner(*claims, partition_total=3).tolist()
    [1, -1, -1]
    """
    owner = np.full(partition_total, -1, dtype=np.int32)
    if _undisputed(partitions):
        owner[partitions] = members
        return owner
    newest = np.full(partition_total, np.iinfo(np.int64).min, dtype=np.int64)
    np.maximum.at(newest, partitions, generations)
    holds: npt.NDArray[np.bool_] = generations == newest[partitions]
    claimed, rivals = partitions[holds], members[holds]
    alone = np.bincount(claimed, minlength=partition_total)[claimed] == 1
    owner[claimed[alone]] = rivals[alone]
    return owner


def earlier_owners(
    partitions: Int64, members: Int32, generations: Int64, *, partition_total: int
) -> Int32 | None:
    """Return each partition's earlier owners: those who claim it with older generations.

    Parameters
    ----------
    partitions, members, generations
        As for `effective_owner`.
    partition_total
        P.

    Returns
    -------
    int32 array of shape (R, P): row r has the r-th newest earlier owner of each partition, or -1.
    Two claims to a partition with the same generation are both ignored. None: no partition has an
    earlier owner.

    Examples
    --------
    >>> claims = (np.array([0, 0, 0, 1]), np.array([0, 1, 2, 1], np.int32), np.array([3, 5, 4, 5]))
    >>> earlier_owners(*claims, partition_total=2).tolist()
    [[2, -1], [0, -1]]
    """
    if _undisputed(partitions):
        return None
    order = np.lexsort((-generations, partitions))
    partitions, members, generations = partitions[order], members[order], generations[order]
    first = np.diff(partitions, prepend=-1) != 0
    newest = np.repeat(generations[first], np.diff(np.flatnonzero(first), append=first.size))
    fresh = first | (np.diff(generations, prepend=0) != 0)
    alone = fresh & np.append(fresh[1:], True)
    earlier = np.flatnonzero(alone & (generations < newest))
    if not earlier.size:
        return None
    claimed = partitions[earlier]
    starts = np.flatnonzero(np.diff(claimed, prepend=-1))
    nth = within_groups(np.diff(starts, append=claimed.size))
    owners = np.full((int(nth.max()) + 1, partition_total), -1, dtype=np.int32)
    owners[nth, claimed] = members[earlier]
    return owners


def _undisputed(partitions: Int64) -> bool:
    """Whether no partition is claimed twice."""
    return not partitions.size or int(np.bincount(partitions).max()) == 1
