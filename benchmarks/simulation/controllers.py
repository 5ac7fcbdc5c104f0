"""Controllers without state: Kafka's assignors, and the published lag-aware algorithm."""

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
        True arrival rates at the time of the previous sample, shape (P,). All rates are in records
        of usual cost per second. The rate of a throttled partition is the rate at which it can be
        read.
    peak_rates
        The rates at the moment of the next 24 hours when their total is highest, shape (P,).
    waiting
        Number of unread records, shape (P,); 0 for a throttled partition.
    speeds
        Speeds of the members, shape (M,).
    """

    rates: Float64
    peak_rates: Float64
    waiting: Float64
    speeds: Float64


@dataclass(frozen=True, eq=False)
class ScenarioMoment(Moment):
    """The input of a controller's decision, with the true state for oracles.

    Parameters
    ----------
    truth
        Returns the true state.
    reports
        Returns the reports of work at the samples in `series`, for controllers that read them.
    """

    truth: Callable[[], Truth]
    reports: Callable[[SampleSeries], ReportSeries | None]


@runtime_checkable
class ReadsReports(Protocol):
    """A controller that says whether it reads reports of work."""

    #: Whether the controller reads reports.
    reports: bool


@runtime_checkable
class TakesBack(Protocol):
    """A controller that rolls back regressions: plans that put the group further behind."""

    def take_back(self, moment: Moment) -> Int32 | None:
        """Return the owners after a rollback of the published plan, or None to keep the plan."""
        ...


class ByAssignor:
    """Runs an assignor at each rebalance, as consumers without plans do.

    Parameters
    ----------
    assignor
        Name of an assignor.
    at_start
        Name of the assignor at the first rebalance.
    plans
        Whether the assignor runs not only at rebalances but also at each decision.
    """

    def __init__(self, assignor: str, *, at_start: str | None = None, plans: bool = False) -> None:
        self._assignor, self._at_start, self._plans = assignor, at_start or assignor, plans
        self._started = False

    def rebalance(self, moment: Moment) -> Int32:
        """Return the owners that the assignor chooses."""
        name = self._assignor if self._started else self._at_start
        self._started = True
        return assign(name, moment.problem).owner

    def decide(self, moment: Moment) -> Int32 | None:
        """Return the owners that the assignor chooses, or None for no change."""
        if not self._plans:
            return None
        owner = assign(self._assignor, moment.problem).owner
        return None if np.array_equal(owner, moment.problem.owner) else owner
