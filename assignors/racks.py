"""Whether members are in the rack of a partition's replica.

Belongs here: the test for many partitions at once. Belongs elsewhere: assigning partitions by rack
(`rack_affinity`, `rack_traffic`).
"""

import numpy as np
import numpy.typing as npt

from assignors.problem import Int32, Int64, Problem

Mask = npt.NDArray[np.bool_]


def in_replica_rack(problem: Problem, partitions: Int64, members: Int64 | Int32) -> Mask:
    """Return whether each member is in a rack with a replica of the partition at the same index."""
    if problem.rack_set_of is None:
        return np.zeros(np.broadcast(partitions, members).shape, dtype=bool)
    near: Mask = problem.near[problem.rack_set_of[partitions], members]
    return near


def far_partitions(problem: Problem, owner: Int32) -> Mask:
    """Return whether each partition is read from another rack, bool of shape (P,).

    False if the rack of the owner or of a replica is unknown.

    Examples
    --------
    >>> from assignors.problem import Member
    >>> members = {"a": Member(["t"], rack="1"), "b": Member(["t"])}
    >>> problem = Problem.of({"t": 2}, members, replica_racks={"t": [["1"], ["2"]]})
    >>> [far_partitions(problem, np.full(2, who, np.int32)).tolist() for who in (0, 1)]
    [[False, True], [False, False]]
    """
    if problem.rack_set_of is None:
        return np.zeros(owner.size, dtype=bool)
    far: Mask = problem.far[problem.rack_set_of, owner] & (owner >= 0)
    return far
