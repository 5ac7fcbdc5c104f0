"""Members in the rack of a partition's replica.

Belongs here: finding them for many partitions at once. Does not: assigning partitions to them
(`rack_affinity`, `rack_traffic`).
"""

import numpy as np
import numpy.typing as npt

from assignors.problem import Int32, Int64, Problem

Mask = npt.NDArray[np.bool_]


def in_replica_rack(problem: Problem, partitions: Int64, members: Int64 | Int32) -> Mask:
    """Whether each member is in the rack of a replica of the partition at the same index."""
    if problem.rack_set_of is None:
        return np.zeros(np.broadcast(partitions, members).shape, dtype=bool)
    near: Mask = problem.near[problem.rack_set_of[partitions], members]
    return near


def far_partitions(problem: Problem, owner: Int32) -> Mask:
    """Whether each partition is read from another rack, bool (P,); False if a rack is unknown.

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
