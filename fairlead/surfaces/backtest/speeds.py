"""How fast the members of a recorded group were.

Belongs here: measuring speeds hour by hour, and assumptions for the other hours. Belongs elsewhere:
the estimator itself (`fairlead.domain.analysis.capacities`).
"""

import numpy as np

from fairlead.domain.analysis.capacities import FASTER, observed_capacities
from fairlead.domain.analysis.commits import read_commits
from fairlead.domain.analysis.read import HISTORY_S, LEAST_SAMPLES
from fairlead.domain.analysis.sample_series import SampleSeries
from fairlead.simulation.world import Float64, Int64


def hourly_speeds(series: SampleSeries) -> Float64:
    """Return the speed of each member in each hour, records per second, of shape (hours, M).

    A member's speed can be measured only while the member has a backlog. For an hour without a
    measurement, the speed is the member's last earlier measurement or, without one, the first
    later measurement. The speed is at least the rate at which the member read in this hour. If a
    member was never measured, its speed is `FASTER` times its largest rate in an hour, and at least
    the median of all members' measurements. For a member that never read, the median of the other
    members' largest rates is used instead of its own rate.
    """
    hours = int(np.ceil((series.at[-1] - series.at[0]) / HISTORY_S)) or 1
    shape = hours, len(series.members)
    measured, least = np.full(shape, np.nan), np.zeros(shape)
    for hour in range(hours):
        until = series.at[0] + (hour + 1) * HISTORY_S
        newest = max(int(np.searchsorted(series.at, until, side="right")) - 1, 0)
        part = series.until(newest).last(HISTORY_S, LEAST_SAMPLES)
        for name, capacity in observed_capacities(part, read_commits(part)).items():
            member = series.members.index(name)
            least[hour, member] = capacity.records_per_s
            if capacity.measured and capacity.at >= until - HISTORY_S:
                measured[hour, member] = capacity.records_per_s
    unknown = np.isnan(measured).all(axis=0)
    assumed = _assumed(measured, least.max(axis=0), series)
    return np.maximum(np.where(unknown, assumed, _nearest(measured)), least)


def _assumed(measured: Float64, most: Float64, series: SampleSeries) -> Float64:
    """Return the speeds to assume for members that were never measured, records/s, shape (M,)."""
    known = measured[~np.isnan(measured)]
    typical = float(np.median(known)) if known.size else 0.0
    positive = most[most > 0]
    usual = float(np.median(positive)) if positive.size else _total_rate(series)
    assumed: Float64 = np.maximum(FASTER * np.where(most > 0, most, usual), typical)
    return assumed


def _total_rate(series: SampleSeries) -> float:
    """Return the group's arrival rate, records per second.

    If no member has read anything, the assumed speed of each member is `FASTER` times this rate.
    """
    ends = grown_ends(series)
    return float((ends[-1] - ends[0]).sum() / (series.at[-1] - series.at[0]))


def _nearest(measured: Float64) -> Float64:
    """In each column, replace NaN by the last earlier value or, without one, the next value."""
    filled = measured.copy()
    for rows in (range(1, len(filled)), range(len(filled) - 2, -1, -1)):
        step = 1 if rows.step > 0 else -1
        for row in rows:
            gap = np.isnan(filled[row])
            filled[row, gap] = filled[row - step, gap]
    return filled


def grown_ends(series: SampleSeries) -> Int64:
    """Return the partitions' end offsets as numbers that never decrease, int64 of shape (L, P).

    Before a partition exists, the number is the partition's first begin offset. If an end offset is
    unknown, or if it has decreased because the topic was created again, the number stays the same.
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
