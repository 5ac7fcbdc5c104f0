"""Lag, rates, time lag and status of a group's partitions.

Belongs here: the definitions of these figures. Belongs elsewhere: reading samples (`archive`), and
planning (`fairlead.domain.analysis`).

Lag counts only records that still exist, as in KAFKA-5337. With a commit, it is end - committed.
Without a commit, it is 0 if the reset policy is `latest`, else end - begin. It is never below 0.
Consequently

- records that were deleted before they were read are not lag but `lost`;
- if the commit is beyond the log's end, after an unclean election or in a recreated topic, lag is
  0;
- in a compacted log, lag is the number of offsets, not of records that remain (as in Kafka tools);
- a partition that no longer exists, or whose offsets could not be read, has no lag.

A group has left a topic if it has commits there but its members subscribe only to other topics
(`left_topics`). The partitions of such a topic have no status and do not count in the group's lag.

Records are lost if the log's start passes the commit from one sample to the next. In the first
sample, all records between commit and start are regarded as lost. A loss is not noticed if
consumers skip the deleted records before the next sample.

Rates and status are computed from several samples. If there are too few, rates are unknown. The
status follows Burrow's rules, applied to samples instead of commits. The first rule that applies
decides:

- DATA_LOSS: in the last half hour (`LOST_WITHIN_S`), more records were lost than the partition's
  lag at rest (see OK).
- REWIND: the committed offset decreased since the previous sample.
- OK: lag is at most the lag at rest, which remains when everything has been read, for example
  because of transaction markers (`fairlead.domain.analysis.commit_habits`).
- STOP: the group had lag, but committed nothing for as long as the group's patience (see below).
- STALL: the partition had lag, but was not committed for as long as the partition's patience, while
  the group committed other partitions.
- WARN: lag grew for as long as the partition's patience and never fell, although commits advanced.
- OK: in all other cases, and if there are too few samples.

A partition's patience is three times its usual time between commits. The group's patience is three
times the median of these times. Both are at least `STALLED_AFTER_S`, and a partition's patience is
at least its group's.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from fairlead.domain.analysis.arrivals import arrival_rates
from fairlead.domain.analysis.commit_habits import at_rest
from fairlead.domain.analysis.sample_series import Float64, Int64, Mask, SampleSeries, quotient
from fairlead.domain.analysis.thresholds import SEVERAL

#: Seconds. A shorter time without commits is not a stall.
STALLED_AFTER_S: Final = 60.0
#: Seconds. Time constant of the mean consumption rate: what was consumed this long ago has the
#: weight 1/e.
SMOOTHING_S: Final = 900.0
#: Seconds. A loss is reported for this long. It is half of `LAG_HISTORY`: in the oldest loaded
#: sample, every earlier loss looks new, so losses in this sample must be too old to be reported.
LOST_WITHIN_S: Final = 1800.0
STATUSES: Final = ("OK", "WARN", "STALL", "STOP", "REWIND", "DATA_LOSS")

#: Rates and statuses are computed from the samples of this period.
LAG_HISTORY: Final = timedelta(hours=1)
#: At least this many samples before the last one are used, even if they are older than
#: `LAG_HISTORY`.
LAG_SAMPLES: Final = 2


@dataclass(frozen=True, eq=False)
class PartitionLag:
    """Lag and status of P partitions at the last sample; each array is of shape (P,).

    Parameters
    ----------
    readable
        Whether the partition could be read; if not, its other values have no meaning.
    lag
        Lag in records.
    lost
        Records that were deleted before they were read.
    lost_at
        Time of the first sample that shows the newest loss, seconds since the epoch; NaN: none.
    arrival_rate, consumption_rate
        Records a second; NaN: unknown.
    time_lag_s
        Age of the next record to be read, in seconds; NaN: unknown.
    status
        Index into `STATUSES`.
    """

    readable: Mask
    lag: Int64
    lost: Int64
    lost_at: Float64
    arrival_rate: Float64
    consumption_rate: Float64
    time_lag_s: Float64
    status: Int64


def left_topics(topics: Iterable[str], members: Collection[Collection[str]]) -> set[str]:
    """Return the topics that a group has left: commits remain, but no member subscribes.

    Parameters
    ----------
    topics
        Topics to which a member of the group subscribes or in which the group has commits.
    members
        Subscribed topics of each member. If there are none, the group has no members or its
        subscriptions are unknown, and the result is empty.

    Examples
    --------
    >>> left_topics(["clicks", "orders"], [["orders"], []]), left_topics(["clicks"], [])
    ({'clicks'}, set())
    """
    read = set[str]().union(*members)
    return set(topics) - read if read else set()


def partition_lag(series: SampleSeries, *, lost_within_s: float = LOST_WITHIN_S) -> PartitionLag:
    """Return lag, rates and status of the partitions of a group.

    Parameters
    ----------
    series
        Samples of P partitions. Their owners are not used.
    lost_within_s
        Seconds for which a loss is reported after the first sample that shows it.

    Notes
    -----
    The arrival rate is estimated as in the analysis. The consumption rate is an exponentially
    weighted mean over the steps between samples, with the time constant `SMOOTHING_S`. The longer a
    step, the more weight it has. A step in which the committed offset decreased is left out.

    `time_lag_s` is the time since the end of the log was at the group's present position,
    interpolated between samples. If the end was there before the first sample, `time_lag_s` is
    lag / `arrival_rate`. Without lag, it is 0.
    """
    return _History(series, lost_within_s).measured()


def partition_statuses(series: SampleSeries) -> list[str]:
    """Return the different statuses of a group's readable partitions.

    The statuses are computed as in `partition_lag`, from the samples of the period `LAG_HISTORY`.
    """
    history = _History(series.last(LAG_HISTORY.total_seconds(), LAG_SAMPLES + 1), LOST_WITHIN_S)
    return [STATUSES[status] for status in np.unique(history.status()[history.readable])]


def _patience(interval_s: Float64 | np.float64) -> Float64:
    """Return the seconds without a commit after which there is a stall, given usual intervals."""
    return np.maximum(SEVERAL * interval_s, STALLED_AFTER_S)


class _History:
    """P partitions in L samples; arrays are of shape (L, P) unless stated otherwise."""

    def __init__(self, series: SampleSeries, lost_within_s: float) -> None:
        self._series, self._lag, self._now = series, series.lag, series.now
        self._begin, self._end, self._committed = series.begin, series.end, series.committed
        self._at = np.broadcast_to(series.at[:, None], self._end.shape)
        self._readable = (self._begin >= 0) & (self._end >= 0)
        # For each sample, the index of the newest earlier sample with readable offsets; -1: none.
        place = np.where(self._readable, np.arange(len(series))[:, None], -1)
        earlier = np.maximum.accumulate(place, axis=0)[:-1]
        self._before: Int64 = np.concatenate((np.full_like(place[:1], -1), earlier))
        self._steps: Mask = self._readable & (self._before >= 0)
        self._step_s: Float64 = self._at - self._prior(self._at)
        self._rest = self._lag_at_rest()
        self._lost, self._lost_at = self._losses(lost_within_s)
        prior = self._prior(self._committed)
        self._moved: Mask = self._steps & (self._committed != prior)
        #: Steps between two samples that both have a committed offset, bool of shape (L, P).
        self._counted: Mask = self._steps & (self._committed >= 0) & (prior >= 0)
        #: Whether each partition could be read, bool of shape (P,).
        self.readable: Mask = self._readable[-1]

    def measured(self) -> PartitionLag:
        """Return lag, rates and status at the last sample."""
        arrivals = arrival_rates(self._series)
        arrival_rate = np.where(arrivals.known, arrivals.per_s, np.nan)
        return PartitionLag(
            readable=self.readable,
            lag=self._lag[-1],
            lost=self._lost,
            lost_at=self._lost_at,
            arrival_rate=arrival_rate,
            consumption_rate=self._consumption(),
            time_lag_s=self._time_lag(arrival_rate),
            status=self.status(),
        )

    def _prior(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return for each sample the values in the last readable sample before it.

        Without such a sample, the values are meaningless.
        """
        return np.take_along_axis(values, np.maximum(self._before, 0), axis=0)

    def _consumption(self) -> Float64:
        """Return mean records read a second, with most weight on recent steps, of shape (P,)."""
        read = self._committed - self._prior(self._committed)
        usable = self._counted & (self._step_s > 0) & (read >= 0)
        step_s = np.where(usable, self._step_s, 1.0)
        age_s = self._now - self._at
        weight = np.exp(-age_s / SMOOTHING_S) * (1.0 - np.exp(-step_s / SMOOTHING_S))
        weight = np.where(usable, weight, 0.0)
        total = weight.sum(axis=0)
        weighed = (weight * np.where(usable, read, 0) / step_s).sum(axis=0)
        unknown = np.full_like(total, np.nan)
        rate: Float64 = np.divide(weighed, total, out=unknown, where=total > 0)
        return rate

    def _silence(self) -> Float64:
        """Return the seconds since each partition's commit last changed, of shape (P,)."""
        moved_at = np.where(self._moved, self._at, -np.inf).max(axis=0)
        first_at = np.where(self._readable, self._at, np.inf).min(axis=0)
        still_s: Float64 = self._now - np.where(np.isfinite(moved_at), moved_at, first_at)
        return still_s

    def _interval(self) -> Float64:
        """Return each partition's usual time between commits, seconds, of shape (P,).

        0 if there was a commit in each step with records to commit; NaN if there was no commit. The
        time since the last commit is left out, because it is compared with the result.
        """
        until_last = np.logical_or.accumulate(self._moved[::-1], axis=0)[::-1]
        due = until_last & self._steps & ((self._prior(self._lag) > self._rest) | self._moved)
        commits = self._moved.sum(axis=0)
        due_s = np.where(due, self._step_s, 0.0).sum(axis=0)
        interval_s = np.where((due & ~self._moved).any(axis=0), due_s / np.maximum(commits, 1), 0.0)
        return np.where(commits > 0, interval_s, np.nan)

    def _lag_at_rest(self) -> Int64:
        """Return the largest lag that remained although everything was read, of shape (P,).

        The first offset of the log is ignored: if retention has deleted a transaction marker, the
        marker still counts as lag.
        """
        deleted = (self._committed >= 0) & (self._committed < self._begin)
        if not deleted.any():
            return at_rest(self._series)
        begin = np.where(deleted, self._committed, self._begin)
        return at_rest(replace(self._series, begin=begin))

    def _losses(self, within_s: float) -> tuple[Int64, Float64]:
        """Return the attributes `lost` and `lost_at` of `PartitionLag`."""
        passed = np.where(self._steps, self._prior(self._begin), 0)
        lost = np.maximum(self._begin - np.maximum(self._committed, passed), 0)
        counted = self._readable & (self._committed >= 0) & (self._now - self._at <= within_s)
        lost = np.where(counted, lost, 0)
        total = lost.sum(axis=0)
        total = np.where(total > self._rest, total, 0)
        seen_at = np.where(lost > 0, self._at, -np.inf).max(axis=0)
        return total, np.where(total > 0, seen_at, np.nan)

    def _time_lag(self, arrival_rate: Float64) -> Float64:
        lag, columns = self._lag[-1], np.arange(self._end.shape[1])
        position = self._end[-1] - lag
        passed = self._readable & (self._end <= position)
        ahead = self._readable & (self._end > position)
        last = len(self._end) - 1 - passed[::-1].argmax(axis=0)
        first = ahead.argmax(axis=0)
        inside = passed.any(axis=0) & ahead.any(axis=0) & (last < first)
        low, high = self._end[last, columns], self._end[first, columns]
        share = (position - low) / np.where(inside, high - low, 1)
        began, ended = self._at[last, columns], self._at[first, columns]
        seen = self._now - (began + share * (ended - began))
        guessed = quotient(lag, arrival_rate, np.nan)
        return np.where(lag == 0, 0.0, np.where(inside, seen, guessed))

    def status(self) -> Int64:
        """Return the status of each partition as an index into `STATUSES`, of shape (P,)."""
        at, lag, rest = self._at, self._lag, self._rest
        still_s, interval_s = self._silence(), self._interval()
        group_still_s = still_s[self.readable].min(initial=np.inf)
        known = np.sort(interval_s[~np.isnan(interval_s)])
        group_patience_s = _patience(known[known.size // 2] if known.size else np.float64(0))
        patience_s = np.fmax(_patience(interval_s), group_patience_s)
        idle_at = np.where(self._readable & (lag <= rest), at, -np.inf).max(axis=0)
        behind = self._readable & (at > idle_at)
        behind_since = np.where(behind, at, np.inf).min(axis=0)
        grown = np.where(self._steps & behind & (at > behind_since), lag - self._prior(lag), 0)
        behind_s = self._now - behind_since
        rules = (
            ("DATA_LOSS", self._lost > 0),
            ("REWIND", (self._counted & (self._committed < self._prior(self._committed)))[-1]),
            ("OK", lag[-1] <= rest),
            ("STOP", np.minimum(behind_s, group_still_s) >= group_patience_s),
            ("STALL", np.minimum(behind_s, still_s) >= patience_s),
            ("WARN", (behind_s >= patience_s) & (grown.sum(axis=0) > 0) & (grown.min(axis=0) >= 0)),
        )
        status = np.full(lag.shape[1], STATUSES.index("OK"))
        for name, holds in reversed(rules):  # the first condition that holds decides
            status[holds] = STATUSES.index(name)
        return status
