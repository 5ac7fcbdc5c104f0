"""Third step of the analysis: time lag and utilisation of an assignment at the horizon.

Belongs here: the figures by which assignments are compared. Belongs elsewhere: the estimates from
which these are computed (`arrivals`, `commits`, `capacities`).

If a member gets `a` records a second, can process `c`, and has a backlog of `B`, its backlog at the
horizon H is max(0, B + (a - c) H), and its time lag is this backlog divided by `a`. The time lag is
higher if the oldest unread record is old now, and grows by at most H.
"""

from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from fairlead.domain.analysis.estimate import Estimates
from fairlead.domain.analysis.log_retention import Retention, retention_of
from fairlead.domain.analysis.per_member import of_owner, sum_by_owner
from fairlead.domain.analysis.question import Question
from fairlead.domain.analysis.read import Observations
from fairlead.domain.analysis.sample_series import Float64, Int32, Mask, quotient
from fairlead.domain.analysis.thresholds import DAY_S

#: `sure_time_lag` assumes that arrivals are this many standard deviations below the estimate.
CHANCE: Final = 2.0
#: Seconds for which a member that has caught up must stay within the objective.
STAYS_S: Final = 600.0
#: A capacity may be higher or lower than estimated by up to this share.
DOUBT: Final = 0.13


@dataclass(frozen=True)
class Forecast:
    """Forecast for a group with a given assignment.

    Parameters
    ----------
    time_lag_s
        The worst member's time lag at the horizon, seconds: a mean over its partitions. Stuck and
        throttled partitions are forecast without their backlog. Silent members count as 0.
    utilisation
        Arrivals divided by capacity of the most utilised member; above 1 the member falls behind.
    loss_s
        Seconds until retention deletes the first unread record; None: never.
    catch_up_s, catch_up_between_s
        Seconds until all partitions (except throttled and stuck ones) are within the objective and
        stay within it for ten minutes, and the 90 % interval of these seconds. None: never.
    """

    time_lag_s: float
    utilisation: float
    loss_s: float | None
    catch_up_s: float | None
    catch_up_between_s: tuple[float | None, float | None]


class _Loads(NamedTuple):
    """Loads of M members: arrivals a second, backlog, and the age of the oldest unread record."""

    arrivals: Float64
    waiting: Float64
    oldest: Float64


@dataclass(frozen=True, eq=False)
class Outlook:
    """Expected loads of P partitions and capacities of M members, in cost-weighted records.

    A record with the cost 2 counts as two cost-weighted records.

    Parameters
    ----------
    arrivals, deviation
        Arrivals a second, and their standard deviations, float64 of shape (P,).
    backlog, time_lag_s
        Records that wait now, and the time lag in seconds, float64 of shape (P,).
    capacities
        Records a second, float64 of shape (M,).
    costs
        Cost of each partition's records, as a multiple of the usual cost, float64 of shape (P,).
    unread
        Partitions (stuck, throttled, or of a silent member) that are assumed not to be read when
        the loss of records is forecast, bool of shape (P,).
    retention
        When retention deletes unread records; None: never.
    objective_s
        Largest acceptable time lag.
    """

    arrivals: Float64
    deviation: Float64
    backlog: Float64
    time_lag_s: Float64
    capacities: Float64
    costs: Float64 | float = 1.0
    unread: Mask | bool = False
    retention: Retention | None = None
    objective_s: float = 60.0

    @property
    def records(self) -> Float64:
        """Arrivals in records a second, not weighted by cost, float64 of shape (P,)."""
        return self.arrivals / self.costs

    def in_records(self, per_s: float, partitions: Mask) -> float:
        """Convert a cost-weighted rate to records a second of the given partitions, bool (P,).

        The records are assumed to have the average cost of all arrivals in these partitions.
        """
        total = float(self.arrivals[partitions].sum())
        return per_s * float(self.records[partitions].sum()) / total if total > 0 else per_s

    def by_member(self, values: Float64, owner: Int32) -> Float64:
        """Sum values of shape (P,) over each member's partitions, float64 of shape (M,)."""
        return sum_by_owner(values, owner, self.capacities.size)

    def utilisation(self, owner: Int32) -> Float64:
        """Return arrivals divided by capacity of each member, (M,); 0 if the capacity is 0."""
        return quotient(self.by_member(self.arrivals, owner), self.capacities, 0.0)

    def capacity_share(self, owner: Int32) -> Float64:
        """Return each partition's arrivals divided by its owner's capacity, (P,); NaN: unknown."""
        return quotient(self.arrivals, of_owner(self.capacities, owner, none=0.0), np.nan)

    def forecast_time_lag(self, owner: Int32, horizon_s: float) -> Float64:
        """Return each member's time lag at the horizon, float64 of shape (M,).

        The result is at most the present time lag plus the horizon. If a member has no capacity,
        its present time lag is returned.
        """
        return self._time_lag(self._loads(owner), horizon_s)

    def sure_time_lag(self, owner: Int32, horizon_s: float) -> Float64:
        """Return the time lag at the horizon if fewer records arrive than estimated, (M,).

        Arrivals are assumed to be lower by `CHANCE` standard deviations. Otherwise a member with
        few arrivals, at nine tenths of its capacity, could seem overloaded by chance.
        """
        loads = self._loads(owner)
        chance = CHANCE * np.sqrt(self.by_member(self.deviation**2, owner))
        fewest = np.maximum(loads.arrivals - chance, 0.0)
        sure = self._time_lag(loads._replace(arrivals=fewest), horizon_s)
        return np.minimum(sure, self._time_lag(loads, horizon_s))

    def _loads(self, owner: Int32) -> _Loads:
        oldest = np.zeros(self.capacities.size)
        np.maximum.at(oldest, owner[owner >= 0], self.time_lag_s[owner >= 0])
        return _Loads(
            self.by_member(self.arrivals, owner), self.by_member(self.backlog, owner), oldest
        )

    def _time_lag(self, loads: _Loads, horizon_s: float) -> Float64:
        # Assume that the age of a member's oldest unread record falls in proportion to its backlog.
        left = self._left(loads, horizon_s) / np.maximum(loads.waiting, 1e-9)
        stays = loads.oldest * np.minimum(left, 1.0)
        return np.maximum(self._usual_time_lag(loads, horizon_s), stays)

    def _usual_time_lag(self, loads: _Loads, horizon_s: float) -> Float64:
        """Return the mean time lag of each member's partitions at the horizon, in seconds, (M,)."""
        grown = _seconds(self._left(loads, horizon_s), loads.arrivals)
        grown = np.minimum(grown, loads.oldest + horizon_s)
        return np.where(self.capacities > 0, grown, loads.oldest)

    def _left(self, loads: _Loads, horizon_s: float) -> Float64:
        """Return each member's backlog at the horizon, records, (M,)."""
        return np.maximum(loads.waiting + (loads.arrivals - self.capacities) * horizon_s, 0.0)

    def forecast(self, owner: Int32, horizon_s: float) -> Forecast:
        """Return the forecast for an assignment. Partitions without an owner are not read.

        Examples
        --------
        >>> none, speeds = np.zeros(2), np.array([100.0, 100.0])
        >>> outlook = Outlook(np.array([60.0, 50.0]), none, none, none, speeds)
        >>> both, one_each = np.array([0, 0], np.int32), np.array([0, 1], np.int32)
        >>> outlook.forecast(both, 1800.0).time_lag_s, outlook.forecast(both, 1800.0).utilisation
        (163.63636363636363, 1.1)
        >>> outlook.forecast(one_each, 1800.0).time_lag_s
        0.0
        """
        loads = self._loads(owner)
        unowned = (owner < 0) & ((self.arrivals > 0) | (self.backlog > 0))
        unread_s = (self.time_lag_s + horizon_s)[unowned].max(initial=0.0)
        likely, soonest, latest = (
            np.full(3, np.inf) if unowned.any() else self._catch_up_s(loads)
        ).tolist()
        return Forecast(
            float(max(unread_s, self._time_lag(loads, horizon_s).max(initial=0.0))),
            float(self.utilisation(owner).max(initial=0.0)),
            _finite(float(self.losses_s(owner).min(initial=np.inf))),
            _finite(likely),
            (_finite(soonest), _finite(latest)),
        )

    def _catch_up_s(self, loads: _Loads) -> Float64:
        """Return the likely, shortest and longest time to reach the objective, seconds, (3,)."""
        arrivals, waiting, oldest = loads
        faster = np.array([1.0, 1.0 + DOUBT, 1.0 - DOUBT])[:, None]
        spare = faster * self.capacities - arrivals
        stays = waiting - spare * STAYS_S <= self.objective_s * arrivals
        late = (oldest > self.objective_s) | ~stays
        # A member that reads records in the order of their arrival reaches the objective before it
        # has read its whole backlog. A member that reads one partition after the other does not.
        alike = np.minimum(_seconds(waiting, arrivals) / np.maximum(oldest, 1e-9), 1.0)
        left = np.maximum(waiting - alike**4 * arrivals * self.objective_s, 0.0)
        longest: Float64 = np.where(late, quotient(left, spare, np.inf), 0.0).max(
            axis=1, initial=0.0
        )
        return longest

    def losses_s(self, owner: Int32) -> Float64:
        """Return the seconds until unread records of each partition are deleted, float64 (P,).

        Infinite: never. Assumptions: a member that catches up finishes all its partitions at the
        same time; a member that falls behind reads the same share of the arrivals in each
        partition.
        """
        if self.retention is None:
            return np.full(owner.size, np.inf)
        arrivals = self.by_member(self.arrivals, owner)
        through = quotient(self.by_member(self.backlog, owner), self.capacities - arrivals, np.inf)
        until = of_owner(through, owner, none=np.inf)
        share = np.minimum(quotient(self.capacities, arrivals, 1.0), 1.0)
        read = self.arrivals * of_owner(share, owner, none=0.0)
        read += quotient(self.backlog, until, 0.0)
        read, until = np.where(self.unread, 0.0, read), np.where(self.unread, np.inf, until)
        waits = (self.backlog > 0) | (owner < 0) | self.unread
        return self.retention.seconds(waits, read / self.costs, until)

    def total_time_lag(self, owner: Int32, horizon_s: float) -> Float64:
        """Return each member's time lag at the horizon, summed over its partitions, (M,)."""
        partitions = self.by_member(np.ones_like(self.arrivals), owner)
        return self._usual_time_lag(self._loads(owner), horizon_s) * partitions


def expect(question: Question, observations: Observations, estimates: Estimates) -> Outlook:
    """Return the expected loads and capacities of a group, in cost-weighted records."""
    costs, held, commits = estimates.costs.value, estimates.held, estimates.commits
    # Of a throttled partition, only the records that are read use its owner's capacity.
    arrivals = np.where(commits.throttled, commits.read_per_s, estimates.rates.per_s)
    return Outlook(
        arrivals=arrivals * costs,
        deviation=estimates.rates.deviation * costs,
        backlog=estimates.backlog * costs,
        time_lag_s=observations.series.time_lag(estimates.backlog, estimates.rates.per_s),
        capacities=estimates.speeds.per_s,
        costs=costs,
        unread=held,
        retention=retention_of(observations.series, estimates.rates.per_s),
        objective_s=question.rules.objective_s,
    )


def _finite(seconds: float) -> float | None:
    return seconds if np.isfinite(seconds) else None


def _seconds(records: Float64, per_s: Float64) -> Float64:
    """Return the seconds in which `records` arrive; a day if there are no arrivals."""
    return quotient(records, per_s, np.where(records > 0, DAY_S, 0.0))
