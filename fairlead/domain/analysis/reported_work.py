"""Seconds per record and busy shares of consumers, from their reports of work.

Belongs here: checking and adding up differences between samples of reported counters. Does not:
reading reports (`fairlead.domain.samples.work_columns`), nor comparing partitions (`costs`).

A difference counts if the same consumer, with the same token, wrote both reports. Every client that
may commit for a group may also write false reports. So an impossible difference is ignored: a
negative one, more records than the committed offset advanced, more seconds than elapsed, or a sum
of squares that is too small for the seconds.
"""

from dataclasses import dataclass, fields
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from assignors.problem import Problem
from fairlead.domain.analysis.sample_series import Float64, Int32, Int64, Mask, SampleSeries
from fairlead.domain.analysis.stalled import SAMPLE_S
from fairlead.domain.analysis.thresholds import CLEARLY, DEVIATIONS, NINE_IN_TEN

Mean = tuple[Float64, Float64, Float64]
"""Records, seconds per record, and their standard error as a share, each of shape (K,)."""

#: Seconds. Tolerance for clocks that differ.
SLACK_S: Final = 2.0
#: Maximum ratio of the ends of an interval; with a wider one, the mean counts as unknown.
_WIDE: Final = 2.0
#: Minimum seconds per record. An application may only put quicker records into a queue.
_LEAST_S: Final = 1e-4
#: Minimum number of records for a mean.
_LEAST_RECORDS: Final = 20
#: Seconds. Standard deviation of a difference, because reports are in whole milliseconds.
_ROUNDING_S: Final = 0.4e-3
#: Seconds. Largest error of a difference, for the same reason.
_EXACT_S: Final = 2e-3
#: Numbers of newest steps that are compared with all earlier ones, to find a change.
_ENDS: Final = (2, 4, 8, 16, 32)
#: Minimum ratio of time in the application to waiting, if no record takes any time: with less, the
#: application may work while the consumer waits.
_WORKS: Final = 0.2
#: Minimum share of busy time that is assigned to records; with less, the speed is unknown.
_KNOWN_SHARE: Final = 0.8


@dataclass(frozen=True, eq=False)
class ReportSeries:
    """The reports in a group's samples: L samples, P partitions, M consumers as in `SampleSeries`.

    Parameters
    ----------
    by
        The consumer that wrote the report of each partition, as an index into
        `SampleSeries.members`: int32 of shape (L, P). -1: no report, or not by a member.
    records, busy_s, squares_s2
        Records of the partition, seconds of processing them, and the sum of the squared seconds per
        record: float64 of shape (L, P).
    token
        Number of each token, int64 of shape (L, M); -1: no report.
    elapsed_s, waiting_s, handler_s
        Seconds since each consumer was created; of these, seconds of waiting for records, and
        seconds in the application: float64 of shape (L, M).
    paused
        Number of paused partitions, float64 of shape (L, M); NaN: several tasks take records.
    """

    by: Int32
    records: Float64
    busy_s: Float64
    squares_s2: Float64
    token: Int64
    elapsed_s: Float64
    waiting_s: Float64
    handler_s: Float64
    paused: Float64

    def of(self, samples: Int64 | slice) -> "ReportSeries":
        """Return the reports of some samples."""
        return ReportSeries(**{its.name: getattr(self, its.name)[samples] for its in fields(self)})


@dataclass(frozen=True, eq=False)
class MeasuredWork:
    """The work of M consumers, with K pairs of a partition and a consumer.

    Parameters
    ----------
    partition, member
        Partition and consumer of each pair, intp of shape (K,).
    records, mean_s, error
        Records of the pair since its mean changed, seconds per record, and the standard error of
        these seconds as a share of them: float64 of shape (K,).
    seconds
        Processing time of the pair in all samples, float64 of shape (K,).
    busy
        Share of the time in which each consumer did not wait for records, float64 of shape (M,);
        NaN: unknown.
    busy_s
        Seconds in which each consumer did not wait, float64 of shape (M,).
    reporting
        Whether each consumer reports, bool of shape (M,).
    slower
        Ratio of the present to the earlier seconds per record, if all consumers became slower at
        the same time; else 1.
    ignored
        Number of impossible differences.
    """

    partition: npt.NDArray[np.intp]
    member: npt.NDArray[np.intp]
    records: Float64
    mean_s: Float64
    error: Float64
    seconds: Float64
    busy: Float64
    busy_s: Float64
    reporting: Mask
    slower: float
    ignored: int

    def share(self, partition: int, member: int) -> float:
        """Return the share of a consumer's time spent on a partition; NaN: unknown."""
        mine = (self.partition == partition) & (self.member == member)
        if not self.busy[member] > 0:
            return np.nan
        return float(self.seconds[mine].sum() / self.busy_s[member] * self.busy[member])

    @property
    def known(self) -> Mask:
        """Whether the mean of each pair is known well enough, bool of shape (K,)."""
        low, high = self.interval
        wide = high > _WIDE * low
        return (self.records >= _LEAST_RECORDS) & ~wide & (self.mean_s >= _LEAST_S)

    @property
    def interval(self) -> tuple[Float64, Float64]:
        """Lower and upper end of the 90 % interval of each mean, each float64 of shape (K,).

        With few records and a large spread, both mean and spread are mostly underestimated. The
        factor `1 + error` makes up for that.
        """
        width = np.exp(np.minimum(NINE_IN_TEN * self.error * (1.0 + self.error), 50.0))
        return self.mean_s / width, self.mean_s * width

    def seconds_per_record(self, owner: Int32) -> Float64:
        """Return seconds per record of each partition on its present owner.

        Parameters
        ----------
        owner
            int32 of shape (P,).

        Returns
        -------
        Lower end, mean and upper end, float64 of shape (P, 3); NaN: unknown.
        """
        rows = np.full((owner.size, 3), np.nan)
        mine = self.known & (owner[self.partition] == self.member)
        low, high = self.interval
        rows[self.partition[mine]] = np.stack((low, self.mean_s, high), axis=1)[mine]
        return rows

    def row(self, problem: Problem) -> dict[str, Any]:
        """Return the work of present members as JSON.

        Returns
        -------
        `partitions`: topic to partition to lower end, mean and upper end, in seconds per record.
        `consumers`: name to busy share; None: unknown.
        """
        partitions: dict[str, dict[str, list[float]]] = {}
        seconds = self.seconds_per_record(problem.owner)
        for place in np.flatnonzero(np.isfinite(seconds[:, 0])).tolist():
            topic, partition = problem.partition_name(place)
            row = [float(f"{value:.4g}") for value in seconds[place].tolist()]
            partitions.setdefault(topic, {})[str(partition)] = row
        consumers = {
            name: None if np.isnan(self.busy[place]) else round(float(self.busy[place]), 4)
            for place, name in enumerate(problem.members)
            if self.reporting[place]
        }
        return {"partitions": partitions, "consumers": consumers}

    def speeds(self, costs: Float64) -> Float64:
        """Return the capacity of consumers in usual records a second, float64 of shape (M,).

        NaN if too little of a consumer's busy time is assigned to records. It may process larger
        batches in hardly more time.

        Parameters
        ----------
        costs
            Processing time of each partition's record in usual records, float64 of shape (P,).
        """
        known = self.known
        assigned_s = np.bincount(self.member[known], self.seconds[known], self.busy.size)
        share = np.minimum(assigned_s / np.maximum(self.busy_s, 1e-9), 1.0)
        per_s: Float64 = share / self.seconds_per_usual_record(costs)
        return np.where(share >= _KNOWN_SHARE, per_s, np.nan)

    def seconds_per_usual_record(self, costs: Float64) -> Float64:
        """Return the seconds per usual record of consumers, float64 of shape (M,); NaN: unknown.

        Parameters
        ----------
        costs
            As for `speeds`.
        """
        known, count = self.known, self.busy.size
        member, records = self.member[known], self.records[known]
        work = np.bincount(member, records * costs[self.partition[known]], count)
        seconds = np.bincount(member, records * self.mean_s[known], count)
        return np.where(work > 0, seconds / np.maximum(work, 1e-9), np.nan)


def reported_work(reports: ReportSeries, series: SampleSeries) -> MeasuredWork:
    """Return the work that consumers report.

    Parameters
    ----------
    reports
        The reports in `series`.
    series
        The samples of about the last hour.

    Notes
    -----
    A mean covers all samples, or only those since it changed: if the newest samples differ from the
    earlier ones by more than `DEVIATIONS` standard errors.
    """
    steps = _steps(reports, series)
    count = len(series.members)
    pair_of = np.where(steps.counts, np.arange(steps.counts.shape[1]) * count + steps.by, -1)
    pairs = np.unique(pair_of[pair_of >= 0])
    partition, member = np.divmod(pairs, max(count, 1))
    mine = pair_of[:, partition] == pairs
    sums = [
        np.where(mine, values[:, partition], 0.0)
        for values in (steps.records, steps.busy_s, steps.squares_s2)
    ]
    splits = _splits(sums)
    records, mean_s, error = _since_change(sums, splits)
    return MeasuredWork(
        partition=partition,
        member=member,
        records=records,
        mean_s=mean_s,
        error=error,
        seconds=sums[1].sum(axis=0),
        busy=steps.busy,
        busy_s=steps.worked_s,
        reporting=(reports.token[-1] >= 0),
        slower=_slower(splits, member),
        ignored=steps.ignored,
    )


def _splits(sums: list[Float64]) -> list[tuple[Mean, Mean]]:
    """Return the means of the newest steps and of all earlier steps, for each of `_ENDS`."""
    whole = [values.sum(axis=0) for values in sums]
    splits = []
    for steps in _ENDS:
        if steps < sums[0].shape[0]:
            late = [values[-steps:].sum(axis=0) for values in sums]
            early = [all_ - its for all_, its in zip(whole, late, strict=True)]
            splits.append((_mean(*late), _mean(*early)))
    return splits


def _slower(splits: list[tuple[Mean, Mean]], member: npt.NDArray[np.intp]) -> float:
    """Return `MeasuredWork.slower`.

    Parameters
    ----------
    splits
        New and earlier means of K pairs.
    member
        The consumer of each pair, intp of shape (K,).
    """
    found = 1.0
    for late, early in splits:
        enough = np.minimum(late[0], early[0]) >= _LEAST_RECORDS
        before, now = (
            np.bincount(member[enough], (its[1] * late[0])[enough]) for its in (early, late)
        )
        times = now[before > 0] / before[before > 0]
        if times.size > 1 and times.min() >= CLEARLY:
            found = max(found, float(np.median(times)))
    return found


def _since_change(sums: list[Float64], splits: list[tuple[Mean, Mean]]) -> Mean:
    """Return the means of K pairs since each last changed.

    Parameters
    ----------
    sums
        Records, seconds and squares of S steps and K pairs, each float64 of shape (S, K).
    splits
        New and earlier means of these pairs.
    """
    found = _mean(*(values.sum(axis=0) for values in sums))
    furthest = np.full(found[0].size, DEVIATIONS)
    for late, early in splits:
        enough = np.minimum(late[0], early[0]) >= _LEAST_RECORDS
        errors = np.where(enough, np.hypot(late[1] * late[2], early[1] * early[2]), np.inf)
        apart = np.abs(late[1] - early[1]) / np.maximum(errors, 1e-12)
        changed = apart > furthest
        furthest = np.where(changed, apart, furthest)
        records, mean_s, error = (
            np.where(changed, its, old) for its, old in zip(late, found, strict=True)
        )
        found = records, mean_s, error
    return found


def _mean(records: Float64, seconds: Float64, squares: Float64) -> Mean:
    """Return a mean from sums of records, seconds and squared seconds."""
    count = np.maximum(records, 1.0)
    mean_s = seconds / count
    spread = np.maximum(squares - seconds * mean_s, 0.0) / np.maximum(count - 1.0, 1.0)
    error_s = np.hypot(np.sqrt(spread / count), _ROUNDING_S / count)
    return records, mean_s, np.where(records > 1, error_s / np.maximum(mean_s, 1e-12), 1e6)


@dataclass(frozen=True, eq=False)
class _Steps:
    """Differences between S + 1 samples; `counts` is true for the valid ones, shape (S, P)."""

    counts: Mask
    by: Int32
    records: Float64
    busy_s: Float64
    squares_s2: Float64
    busy: Float64
    worked_s: Float64
    ignored: int


def _steps(reports: ReportSeries, series: SampleSeries) -> _Steps:
    """Return the differences between consecutive samples."""
    by = reports.by[1:]
    who = np.maximum(by, 0)
    dt = series.seconds[:, None]
    same_life = (np.diff(reports.token, axis=0) == 0) & (reports.token[1:] >= 0)
    elapsed, waiting, handler = (
        np.diff(values, axis=0)
        for values in (reports.elapsed_s, reports.waiting_s, reports.handler_s)
    )
    with np.errstate(invalid="ignore"):
        sound = (
            (elapsed >= 0)
            & (waiting >= 0)
            & (handler >= 0)
            & (waiting + handler <= elapsed + SLACK_S)
            # A sample reads commits a while after its time.
            & (elapsed <= dt + _stale_s(reports.elapsed_s, series) + SAMPLE_S)
        )
        records, busy_s, squares = (
            np.diff(values, axis=0)
            for values in (reports.records, reports.busy_s, reports.squares_s2)
        )
        linked = (by >= 0) & (reports.by[:-1] == by)
        linked &= np.take_along_axis(same_life, who, axis=1) if same_life.size else False
        read = np.diff(series.committed, axis=0)
        committed = (series.committed[1:] >= 0) & (series.committed[:-1] >= 0)
        possible = (
            np.isfinite(records + busy_s + squares)
            & (records >= 0)
            & (busy_s >= 0)
            & (squares >= 0)
            # The sum of squares is at least that of equal times.
            & (np.maximum(busy_s - _EXACT_S, 0.0) ** 2 <= records * (squares + _EXACT_S**2))
            & (~committed | (records <= np.maximum(read, 0)))
        )
        if linked.size:
            possible &= np.take_along_axis(sound, who, axis=1)
            possible &= busy_s <= np.take_along_axis(elapsed, who, axis=1) + SLACK_S
    counts = linked & possible
    # The seconds of all partitions of a consumer together cannot exceed its elapsed seconds.
    rows = np.broadcast_to(np.arange(len(by))[:, None], by.shape)

    def by_consumer(values: Float64) -> Float64:
        sums = np.zeros_like(elapsed)
        np.add.at(sums, (rows[counts], by[counts]), values[counts])
        return sums

    assigned = by_consumer(busy_s)
    with np.errstate(invalid="ignore"):
        overbooked = assigned > elapsed + SLACK_S
    if counts.size:
        counts &= ~np.take_along_axis(overbooked, who, axis=1)
    alive = same_life & sound & ~overbooked
    elapsed, waiting, handler, assigned, taken = (
        np.where(alive, values, 0.0).sum(axis=0)
        for values in (elapsed, waiting, handler, assigned, by_consumer(records))
    )
    paused = np.nan_to_num(reports.paused[1:], nan=1.0)
    clear = elapsed > 0
    clear &= ~((paused > 0) & alive).any(axis=0)
    busy = np.where(clear, 1.0 - waiting / np.where(clear, elapsed, 1.0), np.nan)
    # The application may put its records into a queue, and process them on other threads.
    busy[(assigned < _LEAST_S * taken) & (handler < _WORKS * waiting)] = np.nan
    ignored = int((linked & ~counts).sum()) + int((same_life & ~sound).sum())
    return _Steps(
        counts=counts & (records > 0),
        by=by,
        records=records,
        busy_s=busy_s,
        squares_s2=squares,
        busy=busy,
        worked_s=elapsed - waiting,
        ignored=ignored,
    )


def _stale_s(values: Float64, series: SampleSeries) -> Float64:
    """Return the maximum age of each report at its sample, in seconds, without the last sample.

    A report with the value of an earlier sample may have been written right after the sample before
    that one. One in the first sample may be as old as the time to the second.
    """
    same = np.zeros(values.shape, dtype=bool)
    same[1:] = values[1:] == values[:-1]
    before = np.concatenate((series.at[:1] - series.seconds[:1], series.at[:-1]))[:, None]
    written = np.maximum.accumulate(np.where(same, -np.inf, before), axis=0)
    stale: Float64 = series.at[:, None] - written
    return stale[:-1]
