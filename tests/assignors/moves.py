"""What changes hands: an assignment compared with the current owners.

Belongs here: the list of moves that tests read. Does not: any expectation.
"""

from dataclasses import dataclass

import numpy as np

from assignors.assignment import Assignment
from assignors.problem import Problem
from fairlead.domain.drafting import MOVED, PLACED


@dataclass(frozen=True)
class Move:
    """One partition that gets a new owner.

    `from_member` is None for a partition that is placed: it had no owner, or its owner is gone.
    `weight` is the partition's lag in records.
    """

    topic: str
    partition: int
    from_member: str | None
    to_member: str
    weight: int
    reason: str


def moves(problem: Problem, assignment: Assignment) -> list[Move]:
    """List the partitions that an assignment moves or places, by topic and partition.

    Examples
    --------
    >>> from assignors.problem import Member
    >>> members = {"a": Member(["t"], owned={"t": [0]}), "b": ["t"]}
    >>> problem = Problem.of({"t": 2}, members, {"t": [7, 9]})
    >>> for move in moves(problem, Assignment(problem, np.array([1, 0], np.int32))):
    ...     print(move.topic, move.partition, move.from_member, move.to_member, move.reason)
    t 0 a b the assignor's rule gives it to another member
    t 1 None a had no owner
    """
    changed = np.flatnonzero((assignment.owner != problem.owner) & (assignment.owner >= 0))
    return [_move(problem, assignment, index) for index in changed.tolist()]


def _move(problem: Problem, assignment: Assignment, index: int) -> Move:
    topic, partition = problem.partition_name(index)
    before = int(problem.owner[index])
    return Move(
        topic=topic,
        partition=partition,
        from_member=problem.members[before] if before >= 0 else None,
        to_member=problem.members[assignment.owner[index]],
        weight=int(problem.weights[index]),
        reason=assignment.reasons.get(index, PLACED if before < 0 else MOVED),
    )
