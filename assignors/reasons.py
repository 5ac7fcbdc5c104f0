"""Why each partition of a lag-aware plan changes hands, in words that hold for the plan as a whole.

Belongs here: reasons of a path's steps, and of partitions that several steps have handed on. Does
not: the steps (`relief`), how far along them the plan goes (`path`).

Each reason is about the member that the partition leaves: what it was relieved of, or what it got
instead. Steps in between, of which a partition ends up elsewhere, are not told.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from assignors.problem import Float64, Int32, Problem
from assignors.relief import Step

EVENED: str = "evens out partition counts (max_count_skew)"
PLACED: str = "had no owner; goes where it burdens the group least"


def reasons(
    problem: Problem,
    *,
    weights: Float64,
    bound: float,
    start: Int32,
    steps: Sequence[Step],
    owner: Int32,
    instead: Mapping[int, int],
) -> dict[int, str]:
    """Return a reason for each partition that a plan moves or places.

    Parameters
    ----------
    problem
        P partitions, M members.
    weights
        What a partition means to its owner, float64 of shape (P,).
    bound
        The lower bound on the heaviest member's load.
    start
        Owners where the path begins: evened out, and without orphans; int32 of shape (P,).
    steps
        Of the path, those that the plan takes.
    owner
        Owners in the plan, int32 of shape (P,).
    instead
        Partitions that leave a member instead of one that a step took, and which one.
    """
    taken: dict[int, list[Step]] = {}
    for step in steps:
        for partition in step.partitions:
            taken.setdefault(partition, []).append(step)
    telling = _Telling(problem, weights, bound, start, owner)
    placed = np.flatnonzero((problem.owner < 0) & (owner >= 0)).tolist()
    moved = np.flatnonzero((problem.owner >= 0) & (owner != problem.owner)).tolist()
    return dict.fromkeys(placed, PLACED) | {
        partition: telling.of(told := instead.get(partition, partition), taken.get(told, ()))
        for partition in moved
    }


class _Telling:
    """What there is to say of a partition that leaves its owner."""

    def __init__(
        self, problem: Problem, weights: Float64, bound: float, start: Int32, owner: Int32
    ) -> None:
        self.problem, self.weights, self.bound = problem, weights, bound
        self.start, self.owner = start, owner
        work = np.zeros(len(problem.members))
        np.add.at(work, start[start >= 0], weights[start >= 0])
        self.loads = work / problem.capacities

    def of(self, partition: int, steps: Sequence[Step]) -> str:
        origin = int(self.problem.owner[partition])
        if not steps:
            return EVENED
        (first, *more) = steps
        if not more and self.start[partition] == origin:
            if partition == first.partitions[0]:
                return self._relieves(origin, first.load)
            if self.owner[first.partitions[0]] == origin != self.problem.owner[first.partitions[0]]:
                return self._makes_room(origin, first.partitions[0])
        return self._net(partition, origin, first)

    def _net(self, partition: int, origin: int, first: Step) -> str:
        """Say what its leaving has come to, whatever the steps in between."""
        if self.start[partition] != origin:
            return EVENED
        if self.loads[origin] > self.bound:
            return self._relieves(origin, float(self.loads[origin]))
        if partition == first.partitions[0]:
            return self._relieves(origin, first.load)
        gained = np.flatnonzero((self.owner == origin) & (self.problem.owner != origin))
        if gained.size:
            return self._makes_room(origin, int(gained[self.weights[gained].argmax()]))
        return (
            f"is handed on by {self.problem.members[origin]} in an exchange among several members"
        )

    def _relieves(self, member: int, load: float) -> str:
        above = load / self.bound - 1
        return f"relieves {self.problem.members[member]}, {above:.1%} above the lower bound"

    def _makes_room(self, member: int, partition: int) -> str:
        other = "{}-{}".format(*self.problem.partition_name(partition))
        return f"makes room on {self.problem.members[member]} for {other}"
