"""Seconds per record and busy shares of consumers, from their reports of work.

Belongs here: checking and adding up differences between samples of reported counters. Does not:
reading reports (`fairlead.domain.samples.work_columns`), nor comparing partitions (`costs`).

A difference counts if the same consumer, with the same token, wrote both reports. Every client that
may commit for a group could write false reports. So impossible differences are ignored: a
negative one, more records than the committed offset advanced, more seconds than elapsed, or a sum
of squares that is too small for the seconds.
"""

from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np

from assignors.problem import Problem
from fairlead.domain.analysis.sample_series import Float64, Int32, Int64, Mask, Places, SampleSeries
from fairlead.domain.analysis.stalled import newest_steps
from fairlead.domain.analysis.thresholds import (
    CLEARLY,
    DEVIATIONS,
    NINE_IN_TEN,
    SAMPLE_S,
    STEPS,
)

#: Seconds. Tolerance for clocks that differ.
SLACK_S: Final = 2.0
#: Maximum ratio of the ends of an interval; with a wider interval, the mean is unknown.
_WIDE: Final = 2.0
#: Minimum seconds per record. With less, an application may only put records into a queue.
_LEAST_S: Final = 1e-4
#: Minimum number of records for a mean.
_LEAST_RECORDS: Final = 20
#: Seconds. Standard deviation of a difference, because reports are in whole milliseconds.
_ROUNDING_S: Final = 0.4e-3
#: Largest difference of offsets per record that does not matter.
_ALIKE: Final = 0.1
#: Seconds. Largest error of a difference, for the same reason.
_EXACT_S: Final = 2e-3
#: Standard error of the mean of one record, as a share: any large number.
_UNKNOWN: Final = 1e6
#: Numbers of newest steps that are compared with all earlier steps, to find a change.
_NEWEST: Final = (2, 4, 8, 16, 32)
#: Minimum ratio of time in the application to waiting, if no record takes any time: with less, the
#: application may work while the consumer waits.
_WORKS: Final = 0.2
#: Minimum share of busy time that is assigned to records; with less, the speed is unknown.
_KNOWN_SHARE: Final = 0.8
#: Minimum share of the newest steps that reports must cover, to show what a consumer waits for.
_COVERED: Final = 0.5
#: Minimum share of its time that a consumer waits for records although some are unread, if a quota
#: or the network limits it. A busy consumer also waits, but only until its next fetch returns.
_WAITING: Final = 0.3


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
        Tokens as numbers, int64 of shape (L, M); -1: no report.
    elapsed_s, waiting_s, handler_s
        Seconds since each consumer was created; of these, seconds of waiting for records, and
        seconds in the application: float64 of shape (L, M).
    paused
        Number of paused partitions, float64 of shape (L, M); NaN: times are unknown.
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
        return ReportSeries(**{name: values[samples] for name, values in vars(self).items()})


@dataclass(frozen=True, eq=False)
class MeasuredWork:
    """The work of M consumers, with K pairs of a partition and a consumer.

    Parameters
    ----------
    partition, member
        Partition and consumer of each pair, intp of shape (K,).
    records, mean_s, error
        Records of the pair since its mean changed, seconds per record, and the standard error as a
        share of these seconds: float64 of shape (K,).
    seconds
        Processing time of the pair in all samples, float64 of shape (K,).
    offsets_per_record
        Number of offsets by which the commits advanced per record, at least 1, float64 of shape
        (K,). Compaction, transaction markers and aborted transactions leave offsets without a
        record.
    busy
        Share of the time in which each consumer did not wait for records, float64 of shape (M,);
        NaN: unknown.
    busy_s
        Seconds in which each consumer did not wait, float64 of shape (M,).
    waiting
        Share of the newest steps in which each consumer waited for records, float64 of shape (M,);
        0: unknown.
    reporting
        Whether each consumer reports, bool of shape (M,).
    slower
        Ratio of the present to the earlier seconds per record, if all consumers became slower at
        the same time; else 1.
    ignored
        Number of impossible differences.
    """

    partition: Places
    member: Places
    records: Float64
    mean_s: Float64
    error: Float64
    seconds: Float64
    offsets_per_record: Float64
    busy: Float64
    busy_s: Float64
    waiting: Float64
    reporting: Mask
    slower: float
    ignored: int

    def share(self, partition: int, member: int) -> float:
        """Return the share of a consumer's time spent on a partition; NaN: unknown."""
        if not self.busy[member] > 0:
            return np.nan
        pair = (self.partition == partition) & (self.member == member)
        return float(self.seconds[pair].sum() / self.busy_s[member] * self.busy[member])

    @property
    def known(self) -> Mask:
        """Whether the mean of each pair is known well enough, bool of shape (K,)."""
        low, high = self.interval
        wide = high > _WIDE * low
        return (self.records >= _LEAST_RECORDS) & ~wide & (self.mean_s >= _LEAST_S)

    @property
    def interval(self) -> tuple[Float64, Float64]:
        """Lower and upper end of the 90 % interval of each mean, each float64 of shape (K,).

        With few records and a large spread, mean and spread are usually underestimated. The factor
        `1 + error` compensates.
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
        present = self.known & (owner[self.partition] == self.member)
        low, high = self.interval
        rows[self.partition[present]] = np.stack((low, self.mean_s, high), axis=1)[present]
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

    @property
    def waits(self) -> Mask:
        """Whether each consumer waited for records much of the time lately, bool of shape (M,)."""
        return self.waiting >= _WAITING

    @property
    def dense_alike(self) -> bool:
        """Whether all partitions have about as many offsets per record."""
        return not self.known.any() or bool(np.ptp(self.offsets_per_record[self.known]) < _ALIKE)

    @property
    def seconds_per_offset(self) -> Float64:
        """Seconds per offset of each pair, float64 of shape (K,); arrivals count offsets, too."""
        return self.mean_s / self.offsets_per_record

    def speeds(self, costs: Float64) -> Float64:
        """Return the capacity of consumers in usual offsets a second, float64 of shape (M,).

        NaN if too little of a consumer's busy time is assigned to records. It might process larger
        batches in about the same time.

        Parameters
        ----------
        costs
            Processing time of each partition's offset in usual offsets, float64 of shape (P,).
        """
        known = self.known
        assigned_s = np.bincount(self.member[known], self.seconds[known], self.busy.size)
        share = np.minimum(assigned_s / np.maximum(self.busy_s, 1e-9), 1.0)
        per_s: Float64 = share / self._seconds_per_usual(
            costs, self.records * self.offsets_per_record
        )
        return np.where(share >= _KNOWN_SHARE, per_s, np.nan)

    def seconds_per_usual_record(self, costs: Float64) -> Float64:
        """Return the seconds per usual record of consumers, float64 of shape (M,); NaN: unknown.

        Parameters
        ----------
        costs
            As for `speeds`.
        """
        return self._seconds_per_usual(costs, self.records)

    def _seconds_per_usual(self, costs: Float64, counts: Float64) -> Float64:
        known, members = self.known, self.busy.size
        member = self.member[known]
        work = np.bincount(member, (counts * costs[self.partition])[known], members)
        seconds = np.bincount(member, (self.records * self.mean_s)[known], members)
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
    A mean covers all steps, or those since its last change: means of the newest and of earlier
    steps differ by more than `DEVIATIONS` standard errors.
    """
    steps = _steps(reports, series)
    count = len(series.members)
    pair_of = np.where(steps.counts, np.arange(series.partitions) * count + steps.by, -1)
    pairs = np.unique(pair_of[pair_of >= 0])
    partition, member = np.divmod(pairs, count)
    of_pair = pair_of[:, partition] == pairs
    work = np.where(of_pair, steps.work[:, :, partition], 0.0)
    means = _since_change(work)
    offsets = np.where(of_pair, steps.offsets[:, partition], 0.0)
    return MeasuredWork(
        partition=partition,
        member=member,
        records=means.records,
        mean_s=means.seconds,
        error=means.error,
        seconds=work[1].sum(axis=0),
        offsets_per_record=_offsets_per_record(offsets, work[0]),
        busy=steps.busy,
        busy_s=steps.worked_s,
        waiting=steps.waiting,
        reporting=(reports.token[-1] >= 0),
        slower=_slower(work, member),
        ignored=steps.ignored,
    )


def _offsets_per_record(offsets: Float64, records: Float64) -> Float64:
    """Return `MeasuredWork.offsets_per_record`: of all steps, or of the newest, if that is less.

    Records may be skipped in some steps, and older records may be compacted, unlike new ones.

    Parameters
    ----------
    offsets, records
        Of S steps and K pairs, float64 of shape (S, K).
    """
    read = records > 0
    usual = np.nanmedian(np.where(read, offsets / np.where(read, records, 1.0), np.nan), axis=0)
    newest = read & (read[::-1].cumsum(axis=0)[::-1] <= STEPS)
    lately = (newest * offsets).sum(axis=0) / (newest * records).sum(axis=0)
    least: Float64 = np.maximum(np.minimum(usual, lately), 1.0)
    return least


class _Means(NamedTuple):
    """Means of K pairs.

    Records, seconds per record, and its relative standard error: float64 of shape (K,).
    """

    records: Float64
    seconds: Float64
    error: Float64

    @classmethod
    def of(cls, sums: Float64) -> "_Means":
        """Return means of sums of records, seconds and squared seconds, of shape (3, K)."""
        records, seconds, squares = sums
        count = np.maximum(records, 1.0)
        mean_s = seconds / count
        variance = np.maximum(squares - seconds * mean_s, 0.0) / np.maximum(count - 1.0, 1.0)
        error_s = np.hypot(np.sqrt(variance / count), _ROUNDING_S / count)
        error = np.where(records > 1, error_s / np.maximum(mean_s, 1e-12), _UNKNOWN)
        return cls(records, mean_s, error)

    @property
    def spread_s(self) -> Float64:
        """Standard deviation of the seconds per record, float64 of shape (K,)."""
        deviation: Float64 = self.error * self.seconds * np.sqrt(self.records)
        return deviation


def _slower(work: Float64, member: Places) -> float:
    """Return `MeasuredWork.slower`.

    Parameters
    ----------
    work
        Records, seconds and squares of S steps and K pairs, float64 of shape (3, S, K).
    member
        The consumer of each pair, intp of shape (K,).
    """
    slower = 1.0
    for steps in _NEWEST:
        if steps >= work.shape[1]:
            continue
        earlier, newest = (
            _Means.of(work[:, :-steps].sum(axis=1)),
            _Means.of(work[:, -steps:].sum(axis=1)),
        )
        enough = np.minimum(earlier.records, newest.records) >= _LEAST_RECORDS
        before_s, now_s = (
            np.bincount(member[enough], (means.seconds * newest.records)[enough])
            for means in (earlier, newest)
        )
        ratios = now_s[before_s > 0] / before_s[before_s > 0]
        if ratios.size > 1 and ratios.min() >= CLEARLY:
            slower = max(slower, float(np.median(ratios)))
    return slower


def _since_change(work: Float64) -> _Means:
    """Return the means since the last change of each pair; `work` as for `_slower`.

    From the longest newest stretch to the shortest, each is compared with the rest of the last
    stretch that differed: a mean that changes several times counts since its last change.
    """
    since = work.sum(axis=1)
    for steps in reversed(_NEWEST):
        if steps < work.shape[1]:
            sums = work[:, -steps:].sum(axis=1)
            earlier, newest = _Means.of(np.maximum(since - sums, 0.0)), _Means.of(sums)
            counts = np.maximum((earlier.records, newest.records), 1.0)
            # Without a change both have the same spread. A few records may lack the rare long ones.
            spread_s = np.maximum(earlier.spread_s, newest.spread_s)
            error_s = np.maximum(spread_s * np.sqrt((1.0 / counts).sum(axis=0)), 1e-12)
            changed = np.abs(newest.seconds - earlier.seconds) > DEVIATIONS * error_s
            changed &= counts.min(axis=0) >= _LEAST_RECORDS
            since = np.where(changed, sums, since)
    return _Means.of(since)


@dataclass(frozen=True, eq=False)
class _Steps:
    """Reports of P partitions and M consumers in S steps between samples.

    Parameters
    ----------
    counts
        Whether the step of a partition has valid records, bool of shape (S, P).
    by
        The consumer of these records, int32 of shape (S, P).
    work
        Differences of `records`, `busy_s` and `squares_s2` in `ReportSeries`, float64 of shape
        (3, S, P).
    offsets
        Offsets by which the commits advanced, float64 of shape (S, P).
    busy, worked_s, waiting, ignored
        As `busy`, `busy_s`, `waiting` and `ignored` in `MeasuredWork`.
    """

    counts: Mask
    by: Int32
    work: Float64
    offsets: Float64
    busy: Float64
    worked_s: Float64
    waiting: Float64
    ignored: int


@np.errstate(invalid="ignore")  # counters that are not reported are NaN
def _steps(reports: ReportSeries, series: SampleSeries) -> _Steps:
    """Return the differences between consecutive samples."""
    by, step = reports.by[1:], np.arange(len(series) - 1)[:, None]
    counters = np.diff(np.stack((reports.elapsed_s, reports.waiting_s, reports.handler_s)), axis=1)
    alive, sound = _consumer_steps(counters, reports, series)
    elapsed_s = counters[0]
    work = np.diff(np.stack((reports.records, reports.busy_s, reports.squares_s2)), axis=1)
    records, busy_s, _ = work
    timed = _timed(reports)
    linked = (by >= 0) & (reports.by[:-1] == by) & alive[step, by] & timed[by]
    offsets = _offsets(series)
    possible = _possible(work, offsets) & (busy_s <= elapsed_s[step, by] + SLACK_S)
    counts = linked & possible & sound[step, by]

    def by_consumer(values: Float64) -> Float64:
        sums: Float64 = np.zeros(elapsed_s.shape)
        np.add.at(sums, (np.broadcast_to(step, by.shape)[counts], by[counts]), values[counts])
        return sums

    # The seconds of all partitions of a consumer together cannot exceed its elapsed seconds.
    assigned_s = by_consumer(busy_s)
    sound &= ~(assigned_s > elapsed_s + SLACK_S)
    counts &= sound[step, by]
    valid = alive & sound
    elapsed, waiting, handler, assigned, taken = (
        np.where(valid, values, 0.0).sum(axis=0)
        for values in (*counters, assigned_s, by_consumer(records))
    )
    busy = 1.0 - waiting / np.maximum(elapsed, 1e-9)
    pauses = (valid & ~(reports.paused[1:] <= 0)).any(axis=0)
    # The application may put its records into a queue, and process them on other threads.
    queues = (assigned < _LEAST_S * taken) & (handler < _WORKS * waiting)
    busy = np.where((elapsed > 0) & timed & ~pauses & ~queues, busy, np.nan)
    newest = slice(-newest_steps(series), None)
    recent_s, waited_s = np.where(valid, counters[:2], 0.0)[:, newest].sum(axis=1)
    shows = recent_s >= _COVERED * series.seconds[newest].sum()
    return _Steps(
        counts=counts & (records > 0),
        by=by,
        work=work,
        offsets=np.where(np.isfinite(offsets), offsets, records),
        busy=busy,
        worked_s=elapsed - waiting,
        waiting=np.where(np.isfinite(busy) & shows, waited_s / np.maximum(recent_s, 1e-9), 0.0),
        ignored=int((linked & ~counts).sum()),
    )


def _timed(reports: ReportSeries) -> Mask:
    """Return whether each consumer's newest report has times, bool of shape (M,).

    An application works in the same way all the time. Its consumer needs some records to notice
    that other threads process them.
    """
    reported = reports.token >= 0
    newest = reported.shape[0] - 1 - np.argmax(reported[::-1], axis=0)
    timed: Mask = np.isfinite(reports.paused[newest, np.arange(newest.size)])
    return timed


def _offsets(series: SampleSeries) -> Float64:
    """Return by how many offsets commits advanced, float64 of shape (S, P); infinite: unknown."""
    known = (series.committed[1:] >= 0) & (series.committed[:-1] >= 0)
    return np.where(known, np.maximum(np.diff(series.committed, axis=0), 0), np.inf)


def _possible(work: Float64, offsets: Float64) -> Mask:
    """Return whether differences of the counters of partitions are possible, bool of shape (S, P).

    Parameters
    ----------
    work
        As in `_Steps`.
    offsets
        Offsets by which the commits advanced, float64 of shape (S, P); infinite: unknown.
    """
    records, busy_s, squares_s2 = work
    # The squares are at least those of equal times: one time for each record and for the rest of
    # its batch, and one for the record in progress at the first of the two reports.
    times = 2.0 * records + 1.0
    enough = np.maximum(busy_s - _EXACT_S, 0.0) ** 2 <= times * (squares_s2 + _EXACT_S**2)
    possible: Mask = (work >= 0).all(axis=0) & (records <= offsets) & enough
    return possible


def _consumer_steps(
    counters: Float64, reports: ReportSeries, series: SampleSeries
) -> tuple[Mask, Mask]:
    """Return whether steps of consumers can be used, and whether their counters are possible.

    Parameters
    ----------
    counters
        Seconds elapsed, waiting and in the application, float64 of shape (3, S, M).

    Returns
    -------
    Two arrays, bool of shape (S, M).
    """
    elapsed_s, waiting_s, handler_s = counters
    in_time = elapsed_s <= series.seconds[:, None] + _age_s(reports.elapsed_s, series) + SAMPLE_S
    alive = (np.diff(reports.token, axis=0) == 0) & (reports.token[1:] >= 0)
    # A report in the first sample may be of any age.
    alive &= in_time | (reports.elapsed_s[:-1] != reports.elapsed_s[0])
    sound = in_time & (counters >= 0).all(axis=0) & (waiting_s + handler_s <= elapsed_s + SLACK_S)
    return alive, sound


def _age_s(elapsed_s: Float64, series: SampleSeries) -> Float64:
    """Return the maximum age of reports at all samples but the last, in seconds, shape (S, M).

    A value that appears in a sample may have been written right after the previous sample. The
    first sample has no previous one, and is counted as one step after it.
    """
    before = np.concatenate((series.at[:1] - series.seconds[:1], series.at[:-1]))[:, None]
    repeated = np.zeros(elapsed_s.shape, dtype=bool)
    repeated[1:] = elapsed_s[1:] == elapsed_s[:-1]
    written = np.maximum.accumulate(np.where(repeated, -np.inf, before), axis=0)
    age_s: Float64 = (series.at[:, None] - written)[:-1]
    return age_s
