"""How fast the members of a recorded group were.

Belongs here: measuring speeds hour by hour, and assumptions for the other hours. Does not:
the estimator itself (`fairlead.domain.analysis.capacities`).
"""

from dataclasses import dataclass

import numpy as np

from fairlead.domain.analysis.capacities import FASTER, shown
from fairlead.domain.analysis.commits import read_commits
from fairlead.domain.analysis.read import HISTORY_S, LEAST_SAMPLES
from fairlead.domain.analysis.sample_series import SampleSeries
from fairlead.simulation.world import Float64, Int64, Mask


@dataclass(frozen=True, eq=False)
class RecordedSpeeds:
    """Speeds of M members in each of K hours.

    Parameters
    ----------
    per_s
        Records a second, float64 of shape (K, M).
    measured
        Which members were ever at their limit, bool of shape (M,); other speeds are assumed.
    """

    per_s: Float64
    measured: Mask

    @classmethod
    def of(cls, series: SampleSeries) -> "RecordedSpeeds":
        """Measure speeds hour by hour.

        In hours without a measurement, a member has its last or else its next measured speed, and
        at least the speed that it showed. A member never at its limit is assumed to be somewhat
        faster than it showed, or as fast as measured peers; one that read nothing, as its peers.
        """
        hours = int(np.ceil((series.at[-1] - series.at[0]) / HISTORY_S)) or 1
        shape = hours, len(series.members)
        found, least = np.full(shape, np.nan), np.zeros(shape)
        for hour in range(hours):
            until = series.at[0] + (hour + 1) * HISTORY_S
            part = _until(series, until).last(HISTORY_S, LEAST_SAMPLES)
            for name, capacity in shown(part, read_commits(part)).items():
                member = series.members.index(name)
                least[hour, member] = capacity.records_per_s
                if capacity.measured and capacity.at >= until - HISTORY_S:
                    found[hour, member] = capacity.records_per_s
        measured = ~np.isnan(found).all(axis=0)
        assumed = _assumed(found, least.max(axis=0), series)
        filled = np.where(measured, _nearest(found), assumed)
        return cls(np.maximum(filled, least), measured)

    def hour_of(self, seconds: Float64) -> Int64:
        """Return the hour of moments, seconds from the start."""
        hours: Int64 = np.minimum(seconds // HISTORY_S, len(self.per_s) - 1).astype(np.int64)
        return hours


def _assumed(found: Float64, most: Float64, series: SampleSeries) -> Float64:
    """Return the assumed speed of members never seen at their limit, records/s, shape (M,)."""
    known = found[~np.isnan(found)]
    typical = float(np.median(known)) if known.size else 0.0
    shown_any = most[most > 0]
    usual = float(np.median(shown_any)) if shown_any.size else _total_rate(series)
    assumed: Float64 = np.maximum(FASTER * np.where(most > 0, most, usual), typical)
    return assumed


def _total_rate(series: SampleSeries) -> float:
    """All arrivals, records a second: the speed assumed if no member was ever seen to read."""
    ends = grown_ends(series)
    return float((ends[-1] - ends[0]).sum() / (series.at[-1] - series.at[0]))


def _nearest(found: Float64) -> Float64:
    """Fill gaps with the last value before, or else the first after, by column."""
    filled = found.copy()
    for rows in (range(1, len(filled)), range(len(filled) - 2, -1, -1)):
        step = 1 if rows.step > 0 else -1
        for row in rows:
            gap = np.isnan(filled[row])
            filled[row, gap] = filled[row - step, gap]
    return filled


def _until(series: SampleSeries, until: float) -> SampleSeries:
    count = max(int(np.searchsorted(series.at, until, side="right")), 1)
    return SampleSeries(
        series.at[:count],
        series.begin[:count],
        series.end[:count],
        series.committed[:count],
        series.members,
        series.owner[:count],
        series.latest,
    )


def grown_ends(series: SampleSeries) -> Int64:
    """Return log end offsets that never decrease, int64 of shape (L, P).

    Before a partition exists, its end is its beginning; while its end is unknown, and when its log
    is created again, nothing arrives.
    """
    known = series.end >= 0
    appears = known.argmax(axis=0)
    each = np.arange(series.partitions)
    begins = np.where(appears > 0, np.maximum(series.begin[appears, each], 0), series.end[0])
    rise = np.zeros(series.end.shape, np.int64)
    last = begins.copy()
    for row in range(len(series)):
        known_now = known[row]
        rise[row, known_now] = np.maximum(series.end[row, known_now] - last[known_now], 0)
        last = np.where(known_now, series.end[row], last)
    ends: Int64 = begins + np.cumsum(rise, axis=0)
    return ends
