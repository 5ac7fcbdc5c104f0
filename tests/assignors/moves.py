"""List the partitions to which an assignment gives a new owner."""

from typing import NamedTuple

import numpy as np

from assignors.assignment import Assignment
from assignors.problem import Problem


class Move(NamedTuple):
    """A partition that gets a new owner; `from_member` is None if it had no owner."""

    topic: str
    partition: int
    from_member: str | None
    to_member: str
    reason: str


def moves(problem: Problem, assignment: Assignment) -> list[Move]:
    """List the partitions with a new owner, sorted by topic and partition."""
    changed = np.flatnonzero((assignment.owner != problem.owner) & (assignment.owner >= 0))
    return [
        Move(
            *problem.partition_name(index),
            problem.members[problem.owner[index]] if problem.owner[index] >= 0 else None,
            problem.members[assignment.owner[index]],
            assignment.reasons.get(index, ""),
        )
        for index in changed.tolist()
    ]
