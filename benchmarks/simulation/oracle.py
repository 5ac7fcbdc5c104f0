"""Oracles: controllers that know the true state, to measure others against.

Belongs here: plans from true rates and speeds. Does not: anything that a planner could do.

Two of them, for the two things that can be asked for. `Minimal` knows what will arrive over the
next day and moves as little as it can: it takes the steps of `assignors.relief`, and stops as soon
as no member is used above `FULL`; greedy steps may not be the fewest, so it then sends home each
partition that still fits there. `Lagging` knows speeds, and the rates of one look before, and
balances what waits and will arrive until the next decision, however many moves it takes.
"""

from dataclasses import replace
from typing import Final

import numpy as np

from assignors.effort import Effort
from assignors.ledger import Ledger, Limits
from assignors.problem import Problem
from assignors.registry import assign
from assignors.relief import relieve
from benchmarks.simulation.controllers import ScenarioMoment, Truth
from fairlead.simulation.controllers import ByPlans, Moment
from fairlead.simulation.world import Float64, Int32

#: How full the minimal oracle may leave a member.
FULL: Final = 0.99


class Oracle(ByPlans):
    """A controller that plans by the true state."""

    #: Whether it is asked at the very start, too, before anything has been seen.
    foresees = False

    def plan(self, moment: Moment) -> Int32 | None:
        """Plan, knowing the truth."""
        if not isinstance(moment, ScenarioMoment):
            raise TypeError("only a made-up group's truth is known")
        return self.plan_by(moment.truth(), moment.problem)

    def plan_by(self, truth: Truth, problem: Problem) -> Int32 | None:
        """Return a plan, int32 of shape (P,), or None: no change."""
        raise NotImplementedError


class Minimal(Oracle):
    """Moves as little as it can, and only when a member would be overloaded within a day."""

    foresees = True

    def plan_by(self, truth: Truth, problem: Problem) -> Int32 | None:
        """Cut at just below full; where no assignment does it, leave everything."""
        return fewest_moves(problem, truth.peak_rates, truth.speeds, FULL)


class Lagging(Oracle):
    """Balances what waits and what would arrive until the next decision, at one look's delay.

    By default it does so at every decision at which members are not even within a hundredth:
    waiting until somebody is overloaded would spare it moves, and make it later.

    Parameters
    ----------
    every_s
        Seconds between decisions.
    band
        How uneven members may be before it acts: the heaviest, over the lower bound.
    """

    def __init__(self, every_s: float, *, band: float = 0.01) -> None:
        super().__init__()
        self._every_s, self._band = every_s, band

    def plan_by(self, truth: Truth, problem: Problem) -> Int32 | None:
        """Balance fully, unless everybody keeps up."""
        work = truth.waiting + truth.rates * self._every_s
        weighted = replace(
            problem, weights=np.rint(work * 100).astype(np.int64), capacities=truth.speeds
        )
        owner = assign("sticky-lag-aware", weighted, band=self._band).owner
        return None if np.array_equal(owner, problem.owner) else owner


def fewest_moves(problem: Problem, rates: Float64, speeds: Float64, full: float) -> Int32 | None:
    """Return the assignment nearest to the present one that no member is used above `full` in.

    Parameters
    ----------
    problem
        P partitions, M members, and who owns what now.
    rates, speeds
        Records a second, shapes (P,) and (M,).

    Returns
    -------
    int32 of shape (P,); None: it fits as it is, or nothing that was tried does.
    """
    timed = replace(problem, capacities=speeds)
    ledger = Ledger(timed, problem.owner, rates, Limits.none(timed))
    if ledger.loads.max(initial=0.0) <= full:
        return None
    for _ in relieve(ledger, np.ones(rates.size, dtype=bool), target=full, effort=Effort(None)):
        pass
    if ledger.loads.max() > full:
        return None
    for partition in np.flatnonzero(ledger.owner != problem.owner).tolist():
        home = int(problem.owner[partition])
        if ledger.loads[home] + rates[partition] / speeds[home] <= full:
            ledger.give(partition, home)
    return ledger.owner
