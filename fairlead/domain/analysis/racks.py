"""Traffic between racks: bytes that a group reads from brokers in other racks.

Belongs here: bytes a second of each partition, and the traffic of an assignment. Belongs elsewhere:
arrivals (`arrivals`), and reducing traffic (`assignors.rack_traffic`).

A consumer reads each record once. So the traffic between racks is what arrives in partitions that
cannot be fetched in their owner's rack. The mean size of a record is the size of a log divided by
its number of offsets.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from assignors.problem import Problem
from assignors.racks import far_partitions
from fairlead.common.words import gigabytes
from fairlead.domain.analysis.sample_series import Float64, Int32, Int64, quotient
from fairlead.domain.analysis.thresholds import DAY_S

_GIGABYTE: Final = 1e9


@dataclass(frozen=True, eq=False)
class RackTraffic:
    """Traffic per second of P partitions, (P,): in bytes if `in_bytes`, otherwise in records."""

    problem: Problem
    per_s: Float64
    in_bytes: bool

    @classmethod
    def of(
        cls, problem: Problem, arrivals: Float64, record_bytes: Float64 | None
    ) -> "RackTraffic | None":
        """Return the traffic of a group; None: racks of members or replicas are unknown.

        Parameters
        ----------
        record_bytes
            Mean size of each partition's records, in bytes, float64 of shape (P,), or None. NaN is
            replaced by the mean of the topic or, if the topic's is unknown, of the group.
        """
        if problem.rack_set_of is None or not any(problem.racks) or not any(problem.rack_sets):
            return None
        if record_bytes is None or np.isnan(record_bytes).all():
            return cls(problem, arrivals, in_bytes=False)
        return cls(problem, arrivals * _filled(problem, record_bytes), in_bytes=True)

    def between(self, owner: Int32) -> float:
        """Return the traffic between racks in bytes a second (in records if sizes are unknown)."""
        return float(self.per_s[far_partitions(self.problem, owner)].sum())

    def share(self, owner: Int32) -> float:
        """Return the traffic between racks as a share of all traffic."""
        total = float(self.per_s.sum())
        return self.between(owner) / total if total else 0.0

    def gb_per_day(self, owner: Int32) -> float | None:
        """Return gigabytes a day from other racks; None: sizes are unknown."""
        return self.daily_gb(self.between(owner))

    def daily_gb(self, per_s: float) -> float | None:
        """Convert bytes a second to gigabytes a day; None if sizes are unknown."""
        return per_s * DAY_S / _GIGABYTE if self.in_bytes else None

    def describe(self, before: Int32, after: Int32, price_per_gb: float | None = None) -> str:
        """Describe the traffic between racks, and its price, before and after a plan."""
        first, then = self.gb_per_day(before), self.gb_per_day(after)
        if first is None or then is None:
            return f"read from other racks: {self.share(before):.0%}, then {self.share(after):.0%}"
        costs = cost_per_day(first, price_per_gb), cost_per_day(then, price_per_gb)
        money = "" if price_per_gb is None else ", {:,.2f} a day, then {:,.2f}".format(*costs)
        return f"between racks: {gigabytes(first)} a day, then {gigabytes(then)}{money}"


def average_bytes(log_bytes: Int64, begin: Int64, end: Int64) -> Float64:
    """Return the mean size of each partition's records, in bytes; NaN: unknown.

    Examples
    --------
    >>> average_bytes(np.array([5000, 0, -1]), np.array([10, 7, 0]), np.array([60, 7, 9])).tolist()
    [100.0, nan, nan]
    """
    known = (log_bytes >= 0) & (begin >= 0)
    return np.where(known, quotient(log_bytes, end - begin, np.nan), np.nan)


def cost_per_day(gb_per_day: float | None, price_per_gb: float | None) -> float | None:
    """Return the daily cost of traffic from other racks; None if traffic or price is unknown."""
    return None if gb_per_day is None or price_per_gb is None else gb_per_day * price_per_gb


def _filled(problem: Problem, sizes: Float64) -> Float64:
    """Replace each unknown size by the mean of the topic, or else by the mean of the group."""
    known = ~np.isnan(sizes)
    topics = len(problem.topics)
    counted = np.bincount(problem.topic_of[known], minlength=topics)
    total = np.bincount(problem.topic_of[known], sizes[known], topics)
    usual = quotient(total, counted, sizes[known].mean())
    return np.where(known, sizes, usual[problem.topic_of])
