"""The path (sequence of steps) of a lag-aware plan: whether to act, how far to go, the outcome.

Belongs here: the loads that decide when a plan is good enough, taking the steps of `relief`,
stopping at the limit on moves, and reporting outcome and frontier. Belongs elsewhere: options and
the start of the path (`sticky_lag_aware`), the reason for each move (`reasons`).
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from assignors.assignment import Assignment, Spent
from assignors.effort import Effort
from assignors.ledger import NO_LIMIT, Ledger
from assignors.lower_bound import load_lower_bound
from assignors.problem import Float64, Int32, Problem
from assignors.reasons import reasons
from assignors.relief import Step, relieve
from assignors.settling import settle, stand_ins

# To move few partitions, a plan usually stops as soon as the highest load is inside the band, the
# range of loads that are good enough. If the highest load was more than _FAR band widths above the
# lower bound, the plan continues until this load is at most _RENEWED widths above the bound: then
# small changes of lag do not push the load out of the band again.
_FAR = 3.0
_RENEWED = 0.2
# Share of the band's width. If a path cannot reach the band, and its last steps together lower the
# highest load by no more than this, these steps are omitted.
_SLIGHT = 0.2


@dataclass(frozen=True)
class Goal:
    """Loads with which the highest load is compared, to decide how far a plan goes.

    The band is the range of loads that are good enough. It begins at the lower bound.

    Parameters
    ----------
    bound
        Lower bound on the highest load of any assignment.
    edge
        The upper end of the band.
    far, renewed
        If the highest load at the start is above `far`, the plan continues down to `renewed`.
    slight
        A difference of loads. If the band cannot be reached, and the last steps together lower the
        highest load by no more than this, these steps are omitted.
    hot_partition
        The partition that determines the bound, because its load exceeds the average load by
        more than the band's width; None if there is none.
    """

    bound: float
    edge: float
    far: float
    renewed: float
    slight: float
    hot_partition: int | None

    @classmethod
    def of(
        cls,
        problem: Problem,
        weights: Float64,
        band: float,
        band_floor: float,
        enough: float | None = None,
    ) -> "Goal":
        """Compute the lower bound of the highest load, and the band above the bound.

        `enough`: a load that is good enough. The band reaches at least up to this load, and the
        plan stops as soon as the highest load is inside the band.
        """
        bound = load_lower_bound(problem, weights)
        slack = max(bound.load * band, band_floor)
        return cls(
            bound=bound.load,
            edge=max(bound.load + slack, enough or 0.0),
            far=np.inf if enough is not None else bound.load + slack * _FAR,
            renewed=bound.load + slack * _RENEWED,
            slight=slack * _SLIGHT,
            hot_partition=bound.partition if bound.alone > bound.shared + slack else None,
        )


class Path:
    """A sequence of steps (moves and exchanges), from which `finish` makes a plan."""

    def __init__(
        self,
        problem: Problem,
        ledger: Ledger,
        goal: Goal,
        *,
        max_moves: int | None,
        effort: Effort,
    ) -> None:
        self.problem, self.ledger, self.goal, self.effort = problem, ledger, goal, effort
        self.budget = NO_LIMIT if max_moves is None else max_moves
        self.start: Int32 = ledger.owner.copy()
        self.last_owner = self.start.copy()
        self.steps: list[Step] = []
        self.points = [Spent(self._moved(self.start), self._highest_load())]

    def finish(self) -> Assignment:
        """Take the steps; return the best assignment on the path within the limit on moves."""
        goal, highest = self.goal, self.points[0].highest_load
        end = 0
        if goal.bound and highest > goal.edge:
            self._walk(goal.edge)
            end = self._worthwhile(goal.edge)
        if goal.bound and highest > goal.far and self.points[-1].highest_load <= goal.edge:
            self._walk(goal.renewed)
            end = self._worthwhile(goal.renewed, end)
        affordable = next(
            (i for i, point in enumerate(self.points[: end + 1]) if point.moves > self.budget),
            end + 1,
        )
        within = self.points[: max(affordable, 1)]
        best = min(range(len(within)), key=lambda i: (within[i].highest_load, i))
        owner = self.start.copy()
        for step in self.steps[:best]:
            for partition, taker in step.takers():
                owner[partition] = taker
        cut_short = affordable <= end
        settled = settle(self.problem, owner, self.ledger.weights)
        ends = cut_short or self.effort.spent or within[best].highest_load <= goal.edge
        if not (ends or np.array_equal(settled, owner)) and self._goes_on(settled):
            settled = owner
        why = reasons(
            self.problem,
            weights=self.ledger.weights,
            bound=goal.bound,
            start=self.start,
            steps=self.steps[:best],
            owner=settled,
            instead=stand_ins(self.problem, owner, settled),
        )
        outcome = self._outcome(within[best], best, cut_short=cut_short)
        return Assignment(self.problem, settled, outcome, why, self._frontier())

    def _goes_on(self, owner: Int32) -> bool:
        """Return whether a next plan that starts from these owners would move partitions again.

        This can happen, because the exchanges at the end of a plan (`settling`) may give the most
        loaded member partitions for which other members have room.
        """
        ledger = Ledger(self.problem, owner, self.ledger.weights, self.ledger.limits)
        effort = Effort(self.effort.pairs)
        following = Path(self.problem, ledger, self.goal, max_moves=None, effort=effort)
        following._walk(self.goal.edge)
        return following._worthwhile(self.goal.edge) > 0

    def _worthwhile(self, target: float, first: int = 0) -> int:
        """Return the index of the first point after which the path gains almost nothing.

        The search starts at point `first`. If the path reaches `target`, the last point is
        returned. Likewise if the effort is spent, since the gain of further steps is then unknown.
        """
        least = self.points[-1].highest_load
        if self.effort.spent or least <= target:
            return len(self.points) - 1
        above = (point.highest_load - least for point in self.points[first:])
        return next(place for place, gain in enumerate(above, first) if gain <= self.goal.slight)

    def _steps(self, ledger: Ledger, target: float, effort: Effort) -> Iterator[Step]:
        everything = np.ones(self.problem.partition_total, dtype=bool)
        return relieve(ledger, everything, target=target, effort=effort)

    def _walk(self, target: float) -> None:
        moved = self.points[-1].moves
        for step in self._steps(self.ledger, target, self.effort):
            for partition, taker in step.takers():
                origin = self.problem.owner[partition]
                if origin >= 0:
                    moved += int(taker != origin) - int(self.last_owner[partition] != origin)
                self.last_owner[partition] = taker
            self.steps.append(step)
            self.points.append(Spent(moved, self._highest_load()))

    def _highest_load(self) -> float:
        return float(self.ledger.loads.max(initial=0.0))

    def _moved(self, owner: Int32) -> int:
        return int(((owner != self.problem.owner) & (self.problem.owner >= 0)).sum())

    def _frontier(self) -> tuple[Spent, ...]:
        """Return the points of the path with a lower load than all points with fewer moves.

        Points are sorted by moves. Points with equally many moves are represented by the
        point with the lowest load.
        """
        frontier: list[Spent] = []
        for point in sorted(self.points):
            if not frontier or point.highest_load < frontier[-1].highest_load:
                frontier.append(point)
        return tuple(frontier)

    def _outcome(self, end: Spent, steps: int, *, cut_short: bool) -> str:
        goal = self.goal
        what = "no change" if not (end.moves or steps) else _counted(end.moves)
        if not goal.bound:
            return f"{what}: there is no lag to balance"
        share = end.highest_load / goal.bound - 1
        above = f"the most loaded member is {share:.1%} above the lower bound"
        if cut_short:
            return f"{what}: further relief takes more than {_counted(self.budget)}; {above}"
        if goal.hot_partition is not None:
            name = self.problem.partition_label(goal.hot_partition)
            if end.highest_load <= goal.edge:
                if end.moves or steps:
                    return f"{what}: {name} sets the lower bound, no further move helps"
                return (
                    f"{what}: {name} sets the lower bound, no assignment can help: repartition it"
                )
        if end.highest_load <= goal.edge:
            return f"{what}: within the band, {above}"
        return f"{what}: {self._why_no_further(steps)}; {above}"

    def _why_no_further(self, steps: int) -> str:
        """Return why a plan with this number of steps does not reach the band."""
        if self.effort.spent:
            return f"the search stopped at its limit of {self.effort.pairs:,} pairs of members"
        if steps < len(self.steps):
            return "more moves would hardly relieve the most loaded member"
        return "no further move or swap relieves the most loaded member"


def _counted(moves: int) -> str:
    return f"{moves:,} {'move' if moves == 1 else 'moves'}"
