"""Traffic between racks: how much of what a group reads comes from a broker in another one.

Belongs here: bytes a second of each partition, and what an assignment makes of them. Does not: how
much arrives (`arrivals`), where partitions are fetched from (`fairlead.kafka.fetch_sources`), fewer
bytes (`assignors.rack_traffic`).

A consumer reads each record once, so that as many bytes cross as arrive at the partitions that are
read from afar. Bytes are averages: the size of a partition's log over the offsets that are in it.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from assignors.problem import Problem
from assignors.racks import far_partitions
from fairlead.common.words import gigabytes
from fairlead.domain.analysis.looks import Float64, Int32, Int64

_GIGABYTE: Final = 1e9
_DAY_S: Final = 86_400.0


@dataclass(frozen=True, eq=False)
class RackTraffic:
    """What P partitions carry, and who is far from them.

    Parameters
    ----------
    problem
        With the racks of members, and of what partitions are read from.
    per_s
        Bytes a second of each partition, float64 of shape (P,); records where `in_bytes` is false.
    in_bytes
        Whether sizes are known.
    """

    problem: Problem
    per_s: Float64
    in_bytes: bool

    @classmethod
    def of(
        cls, problem: Problem, arrivals: Float64, record_bytes: Float64 | None
    ) -> "RackTraffic | None":
        """Return the traffic of a group; None: nobody in it can be far from a partition.

        Parameters
        ----------
        arrivals
            Records a second, float64 of shape (P,).
        record_bytes
            Bytes of a record on average, float64 of shape (P,); NaN: not known, and taken for what
            is usual in its topic, or else in the group. None: nothing is known.
        """
        if problem.rack_set_of is None or not any(problem.racks) or not any(problem.rack_sets):
            return None
        sizes = None if record_bytes is None else _filled(problem, record_bytes)
        if sizes is None:
            return cls(problem, arrivals, in_bytes=False)
        return cls(problem, arrivals * sizes, in_bytes=True)

    def between(self, owner: Int32) -> float:
        """Return what comes from other racks a second, as far as racks are known."""
        return float(self.per_s[far_partitions(self.problem, owner)].sum())

    def share(self, owner: Int32) -> float:
        """Return which share of all that is read comes from other racks."""
        total = float(self.per_s.sum())
        return self.between(owner) / total if total else 0.0

    def gb_per_day(self, owner: Int32) -> float | None:
        """Return how many gigabytes a day come from other racks; None: sizes are not known."""
        return self.daily_gb(self.between(owner))

    def daily_gb(self, per_s: float) -> float | None:
        """Convert bytes a second to gigabytes a day; None if sizes are not known."""
        return per_s * _DAY_S / _GIGABYTE if self.in_bytes else None

    def said(self, before: Int32, after: Int32, price_per_gb: float | None = None) -> str:
        """Say what comes from other racks under two assignments, and what it costs."""
        first, then = self.gb_per_day(before), self.gb_per_day(after)
        if first is None or then is None:
            return f"read from other racks: {self.share(before):.0%}, then {self.share(after):.0%}"
        costs = cost_per_day(first, price_per_gb), cost_per_day(then, price_per_gb)
        money = "" if price_per_gb is None else ", {:,.2f} a day, then {:,.2f}".format(*costs)
        return f"between racks: {gigabytes(first)} a day, then {gigabytes(then)}{money}"


def average_bytes(log_bytes: Int64, begin: Int64, end: Int64) -> Float64:
    """Return the bytes of a record on average, by offsets; NaN where that is not known.

    Examples
    --------
    >>> average_bytes(np.array([5000, 0, -1]), np.array([10, 7, 0]), np.array([60, 7, 9])).tolist()
    [100.0, nan, nan]
    """
    known = (log_bytes >= 0) & (begin >= 0) & (end > begin)
    offsets = np.where(known, end - begin, 1)
    return np.where(known, log_bytes / offsets, np.nan)


def cost_per_day(gb_per_day: float | None, price_per_gb: float | None) -> float | None:
    """Return the daily cost of traffic from other racks; None if traffic or price is unknown."""
    return None if gb_per_day is None or price_per_gb is None else gb_per_day * price_per_gb


def _filled(problem: Problem, sizes: Float64) -> Float64 | None:
    """Give partitions of unknown size what is usual; None: no size is known."""
    known = ~np.isnan(sizes)
    if not known.any():
        return None
    if known.all():
        return sizes
    topics = len(problem.topics)
    counted = np.bincount(problem.topic_of[known], minlength=topics)
    total = np.bincount(problem.topic_of[known], sizes[known], topics)
    usual = np.where(counted > 0, total / np.maximum(counted, 1), sizes[known].mean())
    return np.where(known, sizes, usual[problem.topic_of])
