"""The lag that an application's way to commit explains.

Belongs here: the age of commits, and batches of producers. Does not: which other lag is a backlog
(`commits`).
"""

from typing import Final

import numpy as np

from fairlead.domain.analysis.sample_series import Float64, Mask, SampleSeries
from fairlead.domain.analysis.thresholds import (
    AUTO_COMMIT_S,
    CLEARLY,
    DEVIATIONS,
    FEW_RECORDS,
    MOSTLY,
    NEGLIGIBLE,
    RECENT_STEPS,
    SEVERAL,
    STEPS,
)

#: Seconds. Largest age of an automatic commit: its interval, and a call of `poll`.
_AUTO_COMMIT_S: Final = AUTO_COMMIT_S + 0.5
#: Maximum ratio of the upper to the lower quartile of ages in a group that commits less often: with
#: intervals near the time between samples, ages change slowly, and quartiles differ by chance.
_APART: Final = 2.0


def explained_ages(series: SampleSeries, arrived: Float64, lag: Float64, rare: Mask) -> Float64:
    """Return the age of a lag that each member's commits explain, seconds, float64 of shape (M,).

    The age of a commit in a sample is between 0 and the commit interval; the median is half of it.
    The lower quartile of the members' medians is used for the whole group: three quarters of a
    group are rarely behind. If samples and commits are in phase, a member has the same age in every
    sample, and commits explain it. The result is at most a step, since these members commit within
    every step.

    Parameters
    ----------
    arrived, lag
        Records of each member in each step, float64 of shape (S, M).
    rare
        Members that commit less often than samples are taken, bool of shape (M,).
    """
    usable = (arrived >= FEW_RECORDS) & ~rare
    enough = usable.sum(axis=0) > STEPS // 2
    if not enough.any():
        return np.full(rare.size, series.step)
    usable, per_s = usable[:, enough], np.maximum(arrived, 1.0) / series.seconds[:, None]
    shows = np.where(usable, (lag / per_s)[:, enough], np.inf)
    ages, count = np.sort(shows, axis=0), usable.sum(axis=0)
    columns = np.arange(count.size)
    medians = ages[(count - 1) // 2, columns]
    low, usual, high = np.quantile(medians, (0.25, 0.5, 0.75))
    auto = min(_AUTO_COMMIT_S, series.step)
    explained = np.full(rare.size, max(min(auto, 2.0 * high), 2.0 * low))
    if low > auto:
        explained[:] = 2.0 * min(high, _APART * low)
    newest = np.minimum(count, RECENT_STEPS)
    chance = np.sqrt(ages[0] / np.median(per_s[:, enough], axis=0))
    same = ages[newest - 1, columns] <= CLEARLY * ages[0] + DEVIATIONS * chance
    same &= newest >= STEPS
    own = CLEARLY * ages[0]
    own = np.where(same, own, np.minimum(own, SEVERAL * usual))
    explained[enough] = np.maximum(explained[enough], np.where(ages[0] > series.step, 0.0, own))
    capped: Float64 = np.minimum(explained, series.step)
    return capped


def in_batches(series: SampleSeries, retained: Mask) -> Mask:
    """Return whether producers of a partition send batches less often than samples are taken, (P,).

    Nothing arrives in some steps, and at least the mean in the next one. The lag of such a
    partition may have arrived just now.

    Parameters
    ----------
    retained
        Whether a partition kept its owner in each step, bool of shape (S, P).
    """
    steps = len(retained)
    usual = series.arrived.sum(axis=0) / max(steps, 1)
    again = (series.arrived[1:] >= MOSTLY * usual) & (series.arrived[:-1] == 0) & retained[1:]
    enough = again.sum(axis=0) >= max(2, NEGLIGIBLE * steps)
    batches: Mask = enough & (usual >= FEW_RECORDS)
    return batches
