"""Assignments: the owner of each partition, with the assignor's explanation.

Belongs here: the result of every assignor. Belongs elsewhere: analysing it (`metrics`, `verifier`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from assignors.problem import Int32, Int64, Problem


class Spent(NamedTuple):
    """A number of moved partitions, and the highest load of a member after these moves."""

    moves: int
    highest_load: float


@dataclass(frozen=True, eq=False)
class Assignment:
    """An owner for each partition.

    Parameters
    ----------
    problem
        The problem that was solved: P partitions, M members.
    owner
        int32 of shape (P,): member index, -1 if the topic has no subscriber.
    outcome
        What the assignor decided and why, in one sentence; None if the assignor states neither.
    reasons
        Map from partition index to the reason for the partition's move or placement; empty if the
        assignor gives no reasons.
    frontier
        The highest load after each number of moves; empty if the assignor does not compute this.
    """

    problem: Problem
    owner: Int32
    outcome: str | None = None
    reasons: Mapping[int, str] = field(default_factory=dict)
    frontier: tuple[Spent, ...] = ()

    def by_member(self) -> dict[str, dict[str, list[int]]]:
        """Return a mapping from each member to a mapping from topics to partition numbers.

        Examples
        --------
        >>> problem = Problem.of({"t": 2}, {"a": ["t"], "b": ["t"]})
        >>> Assignment(problem, np.array([1, 1], np.int32)).by_member()
        {'a': {}, 'b': {'t': [0, 1]}}
        """
        problem = self.problem
        shares: dict[str, dict[str, list[int]]] = {name: {} for name in problem.members}
        assigned = np.flatnonzero(self.owner >= 0)
        order = assigned[np.argsort(self.owner[assigned], kind="stable")]
        if not order.size:
            return shares
        members, topics = self.owner[order], problem.topic_of[order]
        numbers = order - problem.topic_offsets[topics]
        changes = (np.diff(members) != 0) | (np.diff(topics) != 0)
        starts = np.concatenate(([0], np.flatnonzero(changes) + 1))
        for start, row in zip(starts.tolist(), np.split(numbers, starts[1:]), strict=True):
            topic = problem.topics[topics[start]]
            shares[problem.members[members[start]]][topic] = row.tolist()
        return shares

    @property
    def counts(self) -> Int64:
        """Number of partitions of each member, int64 of shape (M,)."""
        assigned = self.owner[self.owner >= 0]
        return np.bincount(assigned, minlength=len(self.problem.members)).astype(np.int64)
