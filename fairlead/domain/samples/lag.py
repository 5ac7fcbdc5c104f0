"""Lag, rates, time lag and status of a group's partitions.

Belongs here: their definitions. Does not: reading samples (`archive`), computing many groups
(`fairlead.spark.lag`), nor planning (`fairlead.domain.analysis`).

Lag counts the records that still exist, as in KAFKA-5337: with a commit, end - committed; without a
commit, 0 if the reset policy is `latest`, else end - begin; never below 0. It follows that

- records that were deleted before they were read are not lag but `lost`;
- a commit beyond the log's end, after an unclean election or in a re-created topic, is lag 0;
- in a compacted log, lag counts offsets, not the remaining records: Kafka's own measure;
- a partition that no longer exists, or whose offsets could not be read, has no lag.

A group has left a topic if it has commits there but its members subscribe to other topics only
(`left_topics`). The partitions of such a topic have no status and do not count in the group's lag.

Records are lost in a sample if the log's start has passed the commit since the previous sample. In
the first sample, all records between commit and start count. Records that were deleted and skipped
by the consumers between two samples are not noticed.

Rates and status use earlier samples. Without enough of them, a value is unknown. Status
follows Burrow's rules, with samples for commits. The first rule that holds decides:

- DATA_LOSS: in the last half hour (`LOST_WITHIN_S`) more records were lost than the partition's lag
  at rest.
- REWIND: the committed offset decreased since the previous sample.
- OK: lag is at most the lag at rest, which remains when everything is read, for example because of
  transaction markers (`fairlead.domain.analysis.commit_habits`).
- STOP: the group had lag but committed nothing for as long as its patience.
- STALL: the same for this partition and its own patience, while the group committed others.
- WARN: lag grew for the partition's patience and never fell, although commits advanced.
- OK: otherwise, also if there are too few samples.

Patience is three usual commit intervals, at least `STALLED_AFTER_S`. A group's usual interval is
the median of its partitions'; a partition's patience is at least its group's.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, fields, replace
from datetime import timedelta
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from fairlead.domain.analysis.arrivals import arrival_rates
from fairlead.domain.analysis.commit_habits import at_rest
from fairlead.domain.analysis.sample_series import Float64, Int64, Mask, SampleSeries, quotient
from fairlead.domain.analysis.thresholds import SEVERAL

#: Seconds. Minimum time without a commit that is a stall.
STALLED_AFTER_S: Final = 60.0
#: Seconds. Time constant of the consumption rate: a step of this age weighs 1/e.
SMOOTHING_S: Final = 900.0
#: Seconds. How long a loss is reported. Half of `LAG_HISTORY`: an older loss is in every loaded
#: sample, and would look new in the oldest one.
LOST_WITHIN_S: Final = 1800.0
STATUSES: Final = ("OK", "WARN", "STALL", "STOP", "REWIND", "DATA_LOSS")

#: Rates and statuses use the samples of this time, and at least this many before the last one.
LAG_HISTORY: Final = timedelta(hours=1)
LAG_SAMPLES: Final = 2

#: Number of partitions measured at once: keeps intermediate arrays small compared to the samples.
_AT_ONCE: Final = 2_000


@dataclass(frozen=True, eq=False)
class PartitionLag:
    """Lag and status of P partitions at the last sample; each array is of shape (P,).

    Parameters
    ----------
    readable
        Whether the partition could be read; if not, its other values have no meaning.
    lag
        In records.
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
        Topics that the group's members read or the group has committed.
    members
        Subscribed topics of each member. If there are none, the group has left nothing: it has no
        members, or its subscriptions are not known.

    Examples
    --------
    >>> left_topics(["clicks", "orders"], [["orders"], []]), left_topics(["clicks"], [])
    ({'clicks'}, set())
    """
    read = set[str]().union(*members)
    return set(topics) - read if read else set()


def partition_lag(
    series: SampleSeries, group_of: Int64 | None = None, *, lost_within_s: float = LOST_WITHIN_S
) -> PartitionLag:
    """Measure the partitions of a group, or of several that were sampled at the same times.

    Parameters
    ----------
    series
        Samples of P partitions; owners do not matter.
    group_of
        Number of each partition's group, int64 of shape (P,); None: there is one group.
    lost_within_s
        Seconds for which a loss is reported after the first sample that shows it.

    Notes
    -----
    The arrival rate is the analysis's estimate. The consumption rate is an exponentially weighted
    mean over the steps between samples, with the time constant `SMOOTHING_S`; longer steps weigh
    more. Steps in which the committed offset went back are left out.

    `time_lag_s` is the time since the log ended at the group's position, interpolated between
    samples. If that was before the first sample, it is lag / `arrival_rate`. Without lag it is 0.
    """
    blocks = [
        vars(block.measured(still_s, usual_s))
        for block, still_s, usual_s in _blocks(series, group_of, lost_within_s)
    ]
    return PartitionLag(**{name: np.concatenate([b[name] for b in blocks]) for name in blocks[0]})


def partition_statuses(series: SampleSeries) -> list[str]:
    """Return the statuses that occur among a group's readable partitions, by `partition_lag`.

    Only the samples of `LAG_HISTORY` count.
    """
    series = series.last(LAG_HISTORY.total_seconds(), LAG_SAMPLES + 1)
    statuses = [
        block.status(still_s, usual_s)[block.readable]
        for block, still_s, usual_s in _blocks(series, None, LOST_WITHIN_S)
    ]
    return [STATUSES[status] for status in np.unique(np.concatenate(statuses))]


def _blocks(
    series: SampleSeries, group_of: Int64 | None, lost_within_s: float
) -> Iterator[tuple["_Block", Float64, Float64]]:
    """Yield blocks of partitions, with the silence and usual commit interval of their groups."""
    blocks = [
        _Block(series, slice(start, start + _AT_ONCE), lost_within_s)
        for start in range(0, max(series.partitions, 1), _AT_ONCE)
    ]
    group_of = np.zeros(series.partitions, np.int64) if group_of is None else group_of
    groups = int(group_of.max(initial=0)) + 1
    still_s = np.full(groups, np.inf)
    np.minimum.at(still_s, group_of, np.concatenate([block.still_s for block in blocks]))
    interval_s = np.concatenate([block.interval_s for block in blocks])
    usual_s = _median_by_group(interval_s, group_of, groups)
    for block in blocks:
        yield block, still_s[group_of[block.where]], usual_s[group_of[block.where]]


def _median_by_group(values: Float64, group_of: Int64, groups: int) -> Float64:
    """Return the upper median of each group's known values, float64 (groups,); 0 if none."""
    known = np.flatnonzero(~np.isnan(values))
    order = known[np.lexsort((values[known], group_of[known]))]
    counts = np.bincount(group_of[known], minlength=groups)
    middle = np.cumsum(counts) - counts + counts // 2
    medians = np.zeros(groups)
    medians[counts > 0] = values[order[middle[counts > 0]]]
    return medians


def _patience(interval_s: Float64) -> Float64:
    """Return the seconds without a commit that are a stall, for usual commit intervals."""
    return np.maximum(SEVERAL * interval_s, STALLED_AFTER_S)


class _Block:
    """Some partitions in L samples; arrays are of shape (L, partitions) unless stated otherwise."""

    def __init__(self, series: SampleSeries, where: slice, lost_within_s: float) -> None:
        self.where = where
        if series.partitions > _AT_ONCE:  # else keep the object, which has cached arrays
            by_partition: dict[str, Any] = {
                field.name: value[:, where]
                for field in fields(series)
                if isinstance(value := getattr(series, field.name), np.ndarray) and value.ndim > 1
            }
            series = replace(series, **by_partition)
        self._series, self._lag, self._now = series, series.lag, series.now
        self._begin, self._end, self._committed = series.begin, series.end, series.committed
        self._at = np.broadcast_to(series.at[:, None], self._end.shape)
        self._readable = (self._begin >= 0) & (self._end >= 0)
        # Index of the last earlier sample with readable offsets, or -1; None: all are readable.
        self._before: Int64 | None = None
        self._steps: Mask = np.broadcast_to(np.arange(len(series))[:, None] > 0, self._end.shape)
        if not self._readable.all():
            place = np.where(self._readable, np.arange(len(series))[:, None], -1)
            earlier = np.maximum.accumulate(place, axis=0)[:-1]
            self._before = np.concatenate((np.full_like(place[:1], -1), earlier))
            self._steps = self._readable & (self._before >= 0)
        self._step_s: Float64 = self._at - self._prior(self._at)
        self._rest = self._lag_at_rest()
        self._lost, self._lost_at = self._losses(lost_within_s)
        self._moved: Mask = self._steps & (self._committed != self._prior(self._committed))
        self._still_s = self._silence()
        self.interval_s = self._interval()
        #: Whether each partition could be read, bool of shape (partitions,).
        self.readable: Mask = self._readable[-1]
        #: Seconds without a commit; infinite if the partition cannot be read.
        self.still_s = np.where(self.readable, self._still_s, np.inf)
        #: Steps between two samples that both have a commit.
        prior = self._prior(self._committed)
        self._counted: Mask = self._steps & (self._committed >= 0) & (prior >= 0)

    def measured(self, group_still_s: Float64, group_interval_s: Float64) -> PartitionLag:
        """Return lag and status.

        Parameters
        ----------
        group_still_s
            Seconds for which each partition's group has committed nothing.
        group_interval_s
            The group's usual commit interval, seconds.
        """
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
            status=self.status(group_still_s, group_interval_s),
        )

    def _prior(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the values of the previous sample; they have no meaning if there is none."""
        if self._before is None:
            return np.concatenate((values[:1], values[:-1]))
        return np.take_along_axis(values, np.maximum(self._before, 0), axis=0)

    def _consumption(self) -> Float64:
        """Return mean records read a second, recent ones weighted most, of shape (partitions,)."""
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
        """Return the seconds since each commit last changed, of shape (partitions,)."""
        moved_at = np.where(self._moved, self._at, -np.inf).max(axis=0)
        first_at = np.where(self._readable, self._at, np.inf).min(axis=0)
        still_s: Float64 = self._now - np.where(np.isfinite(moved_at), moved_at, first_at)
        return still_s

    def _interval(self) -> Float64:
        """Return each partition's usual time between commits, seconds, of shape (partitions,).

        0 if each step with records to commit has a commit; NaN if there is no commit. The time
        since the last commit is left out, because it is later compared with this interval.
        """
        until_last = np.logical_or.accumulate(self._moved[::-1], axis=0)[::-1]
        due = until_last & self._steps & ((self._prior(self._lag) > self._rest) | self._moved)
        commits = self._moved.sum(axis=0)
        due_s = np.where(due, self._step_s, 0.0).sum(axis=0)
        interval_s = np.where((due & ~self._moved).any(axis=0), due_s / np.maximum(commits, 1), 0.0)
        return np.where(commits > 0, interval_s, np.nan)

    def _lag_at_rest(self) -> Int64:
        """Return each partition's largest lag with everything read, of shape (partitions,).

        Records below the log's start count here: retention also deletes transaction markers.
        """
        deleted = (self._committed >= 0) & (self._committed < self._begin)
        if not deleted.any():
            return at_rest(self._series)
        begin = np.where(deleted, self._committed, self._begin)
        return at_rest(replace(self._series, begin=begin))

    def _losses(self, within_s: float) -> tuple[Int64, Float64]:
        """Return `PartitionLag.lost` and `lost_at`."""
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

    def status(self, group_still_s: Float64, group_interval_s: Float64) -> Int64:
        """Return `PartitionLag.status`; for the parameters see `measured`."""
        at, lag, rest = self._at, self._lag, self._rest
        group_patience_s = _patience(group_interval_s)
        patience_s = np.fmax(_patience(self.interval_s), group_patience_s)
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
            ("STALL", np.minimum(behind_s, self._still_s) >= patience_s),
            ("WARN", (behind_s >= patience_s) & (grown.sum(axis=0) > 0) & (grown.min(axis=0) >= 0)),
        )
        status = np.full(lag.shape[1], STATUSES.index("OK"))
        for name, holds in reversed(rules):  # the first condition that holds decides
            status[holds] = STATUSES.index(name)
        return status
