"""Assignments: which member reads each partition, and what the assignor has to say of it.

Belongs here: the result every assignor returns. Does not: analysing it, also by what was before
(`metrics`, `verifier`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from assignors.problem import Int32, Int64, Problem


class Spent(NamedTuple):
    """One point of a frontier: the heaviest member's load after that many moves."""

    moves: int
    heaviest: float


@dataclass(frozen=True, eq=False)
class Assignment:
    """One owner a partition.

    Parameters
    ----------
    problem
        What was to be assigned: P partitions, M members.
    owner
        int32 of shape (P,): member index, -1 where the topic has no subscriber.
    outcome
        One sentence on what the assignor decided and why, where it has a choice to explain.
    reasons
        Partition index to why it moved or was placed, where the assignor knows more than that it
        did.
    frontier
        What fewer moves would have bought, from none to all that were made.
    """

    problem: Problem
    owner: Int32
    outcome: str | None = None
    reasons: Mapping[int, str] = field(default_factory=dict)
    frontier: tuple[Spent, ...] = ()

    def by_member(self) -> dict[str, dict[str, list[int]]]:
        """Member name to topic to partition numbers: every member, names and numbers ascending.

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
        """Partitions of each member, int64 of shape (M,)."""
        assigned = self.owner[self.owner >= 0]
        return np.bincount(assigned, minlength=len(self.problem.members)).astype(np.int64)
