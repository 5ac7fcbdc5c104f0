"""Oracles: controllers that plan from the true state, for comparison with other controllers.

No real planner knows the true rates and speeds.

There are two oracles, for two objectives. `Minimal` knows the arrivals of the next day and makes
few moves. It moves partitions as `assignors.relief` does until no member's utilisation exceeds
`FULL`. This may be more moves than necessary. Therefore, `Minimal` then returns partitions to those
previous owners that still have room. `Lagging` knows the true speeds, and the rates at the previous
sample. With any number of moves, it balances the records that are unread or will arrive before the
next decision.
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

#: Maximum utilisation of a member under a plan of `Minimal`.
FULL: Final = 0.99


class Oracle(ByPlans):
    """A controller that plans from the true state."""

    #: Whether the oracle also plans at the start, before the first sample.
    foresees = False

    def plan(self, moment: Moment) -> Int32 | None:
        """Return a plan from the true state."""
        if not isinstance(moment, ScenarioMoment):
            raise TypeError("only a made-up group's truth is known")
        return self.plan_by(moment.truth(), moment.problem)

    def plan_by(self, truth: Truth, problem: Problem) -> Int32 | None:
        """Return the owners, int32 of shape (P,), or None for no change."""
        raise NotImplementedError


class Minimal(Oracle):
    """Moves few partitions, and only if a member would be overloaded within a day."""

    foresees = True

    def plan_by(self, truth: Truth, problem: Problem) -> Int32 | None:
        """Return owners that overload no member. None: none found, or no move needed."""
        return fewest_moves(problem, truth.peak_rates, truth.speeds, FULL)


class Lagging(Oracle):
    """Balances the records that are unread or will arrive before the next decision.

    Arrival rates are those at the previous sample. By default, this oracle plans whenever the
    highest load is more than 1 % above the lower bound: to wait for an overload would save moves,
    but increase the time lag.

    Parameters
    ----------
    every_s
        Seconds between decisions.
    band
        Partitions move only if the highest load exceeds the lower bound by more than this share.
    """

    def __init__(self, every_s: float, *, band: float = 0.01) -> None:
        super().__init__()
        self._every_s, self._band = every_s, band

    def plan_by(self, truth: Truth, problem: Problem) -> Int32 | None:
        """Return balanced owners, or None if the highest load is within the band already."""
        work = truth.waiting + truth.rates * self._every_s
        weighted = replace(
            problem, weights=np.rint(work * 100).astype(np.int64), capacities=truth.speeds
        )
        owner = assign("sticky-lag-aware", weighted, band=self._band).owner
        return None if np.array_equal(owner, problem.owner) else owner


def fewest_moves(problem: Problem, rates: Float64, speeds: Float64, full: float) -> Int32 | None:
    """Return an assignment with few moves in which no member's utilisation is above `full`.

    Parameters
    ----------
    problem
        P partitions, M members and the present owners.
    rates, speeds
        Records per second, shapes (P,) and (M,).

    Returns
    -------
    int32 of shape (P,); None if the present assignment is within `full`, or if none was found.
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
