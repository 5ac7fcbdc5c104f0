"""Controllers without memory: Kafka's assignors, and the published lag-aware algorithm."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from assignors.registry import assign
from fairlead.domain.analysis.reported_work import ReportSeries
from fairlead.domain.analysis.sample_series import SampleSeries
from fairlead.simulation.controllers import Moment
from fairlead.simulation.world import Float64, Int32


@dataclass(frozen=True, eq=False)
class Truth:
    """The true state, for oracles only: P partitions, and the M members that are present.

    Parameters
    ----------
    rates
        True arrival rates one sample ago, shape (P,). All rates are in records of usual cost a
        second; the rate of a throttled partition is the rate at which it can be read.
    peak_rates
        The rates at the moment of the next day with the highest total, shape (P,).
    waiting
        Unread records, shape (P,); 0 for a throttled partition.
    speeds
        Speeds of members, shape (M,).
    """

    rates: Float64
    peak_rates: Float64
    waiting: Float64
    speeds: Float64


@dataclass(frozen=True, eq=False)
class ScenarioMoment(Moment):
    """The input of a controller; the truth is for oracles.

    Parameters
    ----------
    truth
        Returns the true state.
    reports
        Returns the reports of work in `series`, for controllers that read them.
    """

    truth: Callable[[], Truth]
    reports: Callable[[SampleSeries], ReportSeries | None]


@runtime_checkable
class ReadsReports(Protocol):
    """A controller that can read reports of work."""

    #: Whether the controller reads reports.
    reports: bool


@runtime_checkable
class TakesBack(Protocol):
    """A controller that withdraws plans that made the group worse."""

    def take_back(self, moment: Moment) -> Int32 | None:
        """Return the owners after withdrawing the published plan, or None to keep the plan."""
        ...


class ByAssignor:
    """An assignor that runs at each rebalance, as in consumers, without plans.

    Parameters
    ----------
    assignor
        A name of `assignors.registry`.
    at_start
        The assignor of the first rebalance.
    plans
        Whether the assignor also runs at each decision.
    """

    def __init__(self, assignor: str, *, at_start: str | None = None, plans: bool = False) -> None:
        self._assignor, self._at_start, self._plans = assignor, at_start or assignor, plans
        self._started = False

    def rebalance(self, moment: Moment) -> Int32:
        """Return the assignor's owners."""
        name = self._assignor if self._started else self._at_start
        self._started = True
        return assign(name, moment.problem).owner

    def decide(self, moment: Moment) -> Int32 | None:
        """Return the assignor's owners, or None: no change."""
        if not self._plans:
            return None
        owner = assign(self._assignor, moment.problem).owner
        return None if np.array_equal(owner, moment.problem.owner) else owner
