"""Oracles: controllers that know the true state, as a benchmark for other controllers.

This module plans from true rates and speeds, which no real planner knows.

There are two oracles, for two objectives. `Minimal` knows the arrivals of the next day and makes
few moves: it takes the steps of `assignors.relief` until no member's utilisation exceeds `FULL`;
because greedy steps may not be the fewest, it then returns each partition that still fits to its
previous owner. `Lagging` knows the speeds, and the rates one sample ago, and balances the records
that wait and will arrive until the next decision, with any number of moves.
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

#: Maximum utilisation of a member under a plan of the minimal oracle.
FULL: Final = 0.99


class Oracle(ByPlans):
    """A controller that plans by the true state."""

    #: Whether the oracle also plans at the start, before the first sample.
    foresees = False

    def plan(self, moment: Moment) -> Int32 | None:
        """Return a plan from the true state."""
        if not isinstance(moment, ScenarioMoment):
            raise TypeError("only a made-up group's truth is known")
        return self.plan_by(moment.truth(), moment.problem)

    def plan_by(self, truth: Truth, problem: Problem) -> Int32 | None:
        """Return a plan, int32 of shape (P,), or None: no change."""
        raise NotImplementedError


class Minimal(Oracle):
    """Moves few partitions, and only if a member would be overloaded within a day."""

    foresees = True

    def plan_by(self, truth: Truth, problem: Problem) -> Int32 | None:
        """Return a plan under which no member is overloaded; None: no change, or no such plan."""
        return fewest_moves(problem, truth.peak_rates, truth.speeds, FULL)


class Lagging(Oracle):
    """Balances records that wait and will arrive until the next decision, one sample behind.

    By default it plans at every decision at which the members differ by more than 1%: waiting for
    an overload would save moves but increase time lag.

    Parameters
    ----------
    every_s
        Seconds between decisions.
    band
        Tolerated excess of the most loaded member over the lower bound.
    """

    def __init__(self, every_s: float, *, band: float = 0.01) -> None:
        super().__init__()
        self._every_s, self._band = every_s, band

    def plan_by(self, truth: Truth, problem: Problem) -> Int32 | None:
        """Return a balanced plan, or None if the present owners are balanced enough."""
        work = truth.waiting + truth.rates * self._every_s
        weighted = replace(
            problem, weights=np.rint(work * 100).astype(np.int64), capacities=truth.speeds
        )
        owner = assign("sticky-lag-aware", weighted, band=self._band).owner
        return None if np.array_equal(owner, problem.owner) else owner


def fewest_moves(problem: Problem, rates: Float64, speeds: Float64, full: float) -> Int32 | None:
    """Return the nearest assignment in which no member's utilisation is above `full`.

    Parameters
    ----------
    problem
        P partitions, M members and the present owners.
    rates, speeds
        Records a second, shapes (P,) and (M,).

    Returns
    -------
    int32 of shape (P,); None: the present assignment fits, or no assignment was found.
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
