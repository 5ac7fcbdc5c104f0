"""The reason for each move of a lag-aware plan.

Belongs here: reasons for partitions that move in one step, or in several steps one after another.
Belongs elsewhere: the steps (`relief`), their number in a plan (`path`).

Each reason is about the member that the partition leaves: either the move relieves this member, or
the member gets another partition in exchange. Owners between the first and the last step are not
mentioned.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from assignors.problem import Float64, Int32, Problem
from assignors.relief import Step

EVENED: str = "evens out partition counts (max_count_skew)"
PLACED: str = "had no owner; adds least load at its new owner"


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
        Load of each partition, float64 of shape (P,).
    bound
        The lower bound on the most loaded member's load.
    start
        Owners at the start of the path, after orphans have been placed and counts evened out; int32
        of shape (P,).
    steps
        The steps of the path that the plan takes.
    owner
        Owners in the plan, int32 of shape (P,).
    instead
        The result of `settling.stand_ins`. Keys are partitions that move only because of the
        exchanges at the end of the plan. Values are the partitions that stay instead.
    """
    steps_of: dict[int, list[Step]] = {}
    for step in steps:
        for partition in step.partitions:
            steps_of.setdefault(partition, []).append(step)
    reason = _Reasons(problem, weights, bound, start, owner)
    placed = np.flatnonzero((problem.owner < 0) & (owner >= 0)).tolist()
    moved = np.flatnonzero((problem.owner >= 0) & (owner != problem.owner)).tolist()
    return dict.fromkeys(placed, PLACED) | {
        partition: reason.of(
            stepped := instead.get(partition, partition), steps_of.get(stepped, ())
        )
        for partition in moved
    }


class _Reasons:
    """Builds the reason for each partition that leaves its owner."""

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
        """Return the reason for a move in several steps, from the first owner to the last one."""
        if self.start[partition] != origin:
            return EVENED
        if self.loads[origin] > self.bound:
            return self._relieves(origin, float(self.loads[origin]))
        if partition == first.partitions[0]:
            return self._relieves(origin, first.load)
        gained = np.flatnonzero((self.owner == origin) & (self.problem.owner != origin))
        if gained.size:
            return self._makes_room(origin, int(gained[self.weights[gained].argmax()]))
        return f"leaves {self.problem.members[origin]}, in an exchange among several members"

    def _relieves(self, member: int, load: float) -> str:
        above = load / self.bound - 1
        name = self.problem.members[member]
        return f"relieves {name}, whose load is {above:.1%} above the lower bound"

    def _makes_room(self, member: int, partition: int) -> str:
        other = self.problem.partition_label(partition)
        return f"makes room on {self.problem.members[member]} for {other}"
