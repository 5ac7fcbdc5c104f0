"""Seconds per record, and how busy consumers are, from the reports of consumers.

Belongs here: checking reported counters, and measuring their growth between samples. Belongs
elsewhere: reading reports (`fairlead.domain.samples.work_columns`), and comparing partitions
(`costs`).

Only the growth of counters between two reports is used, and only if the same run of a consumer
wrote both: each run has its own token. Every client that may commit for a group could write false
reports, so impossible growth is ignored: negative values, more records than the committed offset
advanced, more seconds than elapsed, or a sum of squared times that is too small for the times.
"""

from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np

from assignors.problem import Problem
from fairlead.domain.analysis.sample_series import (
    Float64,
    Int32,
    Int64,
    Mask,
    Places,
    SampleSeries,
    quotient,
)
from fairlead.domain.analysis.stalled import newest_steps
from fairlead.domain.analysis.thresholds import (
    CLEARLY,
    DEVIATIONS,
    NINE_IN_TEN,
    SAMPLE_S,
    STEPS,
)

#: Seconds. Tolerance because clocks may differ.
SLACK_S: Final = 2.0
#: Maximum ratio of the upper to the lower end of the 90 % interval of a mean. If the ratio is
#: larger, the mean is unknown.
_WIDE: Final = 2.0
#: Minimum seconds per record. If a record takes less, the consumer may only have put it into a
#: queue.
_LEAST_S: Final = 1e-4
#: Minimum number of records for a mean.
_LEAST_RECORDS: Final = 20
#: Seconds. Standard deviation of the rounding error of a difference of times in milliseconds.
_ROUNDING_S: Final = 0.4e-3
#: If the partitions' numbers of offsets per record differ by less than this, the difference is
#: ignored.
_ALIKE: Final = 0.1
#: Seconds. Largest rounding error of a difference of times in milliseconds.
_EXACT_S: Final = 2e-3
#: Relative standard error of a mean of a single record, whose spread is unknown: a large number.
_UNKNOWN: Final = 1e6
#: Numbers of newest steps that are compared with all earlier steps to find a change.
_NEWEST: Final = (32, 16, 8, 4, 2)
#: If records take almost no time, and the time in the application's code is less than this share of
#: the waiting time, other threads may process the records.
_WORKS: Final = 0.2
#: A consumer's speed is known only if its records take at least this share of its busy time.
_KNOWN_SHARE: Final = 0.8
#: Reports must cover at least this share of the newest steps to show how long a consumer waits.
_COVERED: Final = 0.5
#: If a consumer waits for records for at least this share of its time, although it has unread
#: records, a quota or the network limits it. A busy consumer waits only until its next fetch
#: returns.
_WAITING: Final = 0.3


@dataclass(frozen=True, eq=False)
class ReportSeries:
    """The reports in a group's samples: L samples, P partitions, M consumers as in `SampleSeries`.

    Unless stated otherwise, values are float64: of shape (L, P) up to `squares_s2`, and of shape
    (L, M) from `elapsed_s` on.
    """

    #: Consumer that wrote each partition's report, int32; -1: no report, or not by a member.
    by: Int32
    #: Counters since the consumer was created: processed records, seconds of processing these
    #: records, and the sum of the squared seconds per record.
    records: Float64
    busy_s: Float64
    squares_s2: Float64
    #: Token of each consumer, as a number, int64 of shape (L, M); -1: no report.
    token: Int64
    #: Seconds since each consumer was created; seconds that it waited for records; seconds that it
    #: spent in the application's code.
    elapsed_s: Float64
    waiting_s: Float64
    handler_s: Float64
    #: Number of paused partitions; NaN if the report has no times.
    paused: Float64

    def of(self, samples: Int64 | slice) -> "ReportSeries":
        """Return the reports of the given samples."""
        return ReportSeries(**{name: values[samples] for name, values in vars(self).items()})


@dataclass(frozen=True, eq=False)
class MeasuredWork:
    """The work that M consumers reported, for K pairs of a partition and a consumer.

    Unless stated otherwise, values are float64: of shape (K,) up to `offsets_per_record`, and of
    shape (M,) from `busy` on.
    """

    #: Partition and consumer of each pair, intp.
    partition: Places
    member: Places
    #: Number of records, their mean seconds, and the relative standard error of this mean. If the
    #: seconds per record have changed, all three are from after the last change.
    records: Float64
    mean_s: Float64
    error: Float64
    #: Processing time of each pair in all samples.
    seconds: Float64
    #: By how many offsets the commit advanced for each record: 1, or more if compaction,
    #: transaction markers or aborted transactions left offsets without a record.
    offsets_per_record: Float64
    #: Time in which each consumer did not wait for records: as a share of its time (NaN: unknown),
    #: and in seconds.
    busy: Float64
    busy_s: Float64
    #: Share of each consumer's committed offsets that valid reports cover.
    covered: Float64
    #: Share of the newest steps' time that each consumer spent waiting for records; 0: unknown.
    waiting: Float64
    #: Whether each consumer has a report in the last sample, bool.
    reporting: Mask
    #: Ratio of the present to the earlier seconds per record, if all consumers became slower at the
    #: same time; else 1.
    slower: float
    #: How often counters grew by an impossible amount, which was ignored.
    ignored: int

    def share(self, partition: int, member: int) -> float:
        """Return the share of a consumer's time that it spent on a partition; NaN: unknown."""
        if not self.busy[member] > 0:
            return np.nan
        pair = (self.partition == partition) & (self.member == member)
        return float(self.seconds[pair].sum() / self.busy_s[member] * self.busy[member])

    @property
    def known(self) -> Mask:
        """Whether the mean of each pair is known precisely enough, bool of shape (K,)."""
        precise = _width(self.error) ** 2 <= _WIDE
        return (self.records >= _LEAST_RECORDS) & precise & (self.mean_s >= _LEAST_S)

    @property
    def interval(self) -> tuple[Float64, Float64]:
        """Lower and upper end of the 90 % interval of each mean, each float64 of shape (K,)."""
        width = _width(self.error)
        return self.mean_s / width, self.mean_s * width

    def seconds_per_record(self, owner: Int32) -> Float64:
        """Return seconds per record of each partition on its present owner, of shape (P, 3).

        The columns are lower end, mean and upper end of the interval. NaN: unknown.
        """
        rows = np.full((owner.size, 3), np.nan)
        present = self.known & (owner[self.partition] == self.member)
        low, high = self.interval
        rows[self.partition[present]] = np.stack((low, self.mean_s, high), axis=1)[present]
        return rows

    def row(self, problem: Problem) -> dict[str, Any]:
        """Return the work of present members as JSON.

        `partitions`: the lower end, mean and upper end of the seconds per record, by topic and
        partition. `consumers` maps each consumer to the busy share of its time, or to None.
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
        """Whether each consumer waited for records for much of the newest steps, (M,)."""
        return self.waiting >= _WAITING

    @property
    def dense_alike(self) -> bool:
        """Whether all partitions have about the same number of offsets per record."""
        return not self.known.any() or bool(np.ptp(self.offsets_per_record[self.known]) < _ALIKE)

    def speeds(self, costs: Float64) -> Float64:
        """Return each consumer's capacity in cost-weighted offsets a second, float64 of shape (M,).

        NaN if the capacity is not known precisely, or if the pairs with enough records take too
        small a share of a consumer's busy time. The consumer may spend the rest on work that does
        not grow with the number of records. `costs`: cost of each partition's records, (P,).
        """
        seconds = self.records * self.mean_s
        in_records = self._by_member(seconds)
        error = quotient(np.sqrt(self._by_member((seconds * self.error) ** 2)), in_records, np.inf)
        busy_s = np.maximum(self.busy_s * self.covered, 1e-9)
        share = np.minimum(self._by_member(self.seconds) / busy_s, 1.0)
        known = (share >= _KNOWN_SHARE) & (_width(error) ** 2 <= _WIDE)
        known &= in_records >= _LEAST_S * self._by_member(self.records)
        offsets = self._by_member(self.records * self.offsets_per_record * costs[self.partition])
        return np.where(known, share * quotient(offsets, in_records, np.nan), np.nan)

    def _by_member(self, values: Float64) -> Float64:
        """Return each consumer's sum of values, of shape (M,), over pairs with enough records."""
        enough = self.records >= _LEAST_RECORDS
        return np.bincount(self.member, values * enough, self.busy.size).astype(np.float64)

    def seconds_per_usual_record(self, costs: Float64) -> Float64:
        """Return each consumer's seconds for a record of cost 1, float64 (M,); NaN: unknown."""
        known, members = self.known, self.busy.size
        member = self.member[known]
        work = np.bincount(member, (self.records * costs[self.partition])[known], members)
        seconds = np.bincount(member, (self.records * self.mean_s)[known], members)
        return quotient(seconds, work, np.nan)


def _width(error: Float64) -> Float64:
    """Return the ratio of the upper end of each mean's 90 % interval to the mean.

    `error`: relative standard errors. If there are few records and their times differ much, the
    mean and the standard error are usually too low. The factor `1 + error` corrects for this.
    """
    width: Float64 = np.exp(np.minimum(NINE_IN_TEN * error * (1.0 + error), 50.0))
    return width


def reported_work(reports: ReportSeries, series: SampleSeries) -> MeasuredWork:
    """Return the work that consumers report, from the samples of about the last hour.

    Mean seconds per record are computed from all steps since their last change. The seconds have
    changed if the mean of the newest steps differs from the mean of the earlier steps by more than
    `DEVIATIONS` standard errors.
    """
    steps, count = _Steps(reports, series), len(series.members)
    pair_of = np.where(steps.counts, np.arange(series.partitions) * count + steps.by, -1)
    pairs = np.unique(pair_of[pair_of >= 0])
    partition, member = np.divmod(pairs, count)
    of_pair = pair_of[:, partition] == pairs
    work = np.where(of_pair, steps.work[:, :, partition], 0.0)
    offsets = np.where(of_pair, steps.offsets[:, partition], 0.0)
    busy, busy_s, waiting = steps.busy()
    means, slower = _since_change(work, member)
    return MeasuredWork(
        partition=partition,
        member=member,
        records=means.records,
        mean_s=means.seconds,
        error=means.error,
        seconds=work[1].sum(axis=0),
        offsets_per_record=_offsets_per_record(offsets, work[0]),
        busy=busy,
        busy_s=busy_s,
        covered=steps.covered(),
        waiting=waiting,
        reporting=(reports.token[-1] >= 0),
        slower=slower,
        ignored=steps.ignored,
    )


def _offsets_per_record(offsets: Float64, records: Float64) -> Float64:
    """Return `MeasuredWork.offsets_per_record`; arguments are of shape (S, K).

    Two ratios are computed, and the lower one is returned. The median over all steps is right if
    records were skipped in only a few steps. The ratio over the newest steps is right if compaction
    affects only older records.
    """
    usual = np.nanmedian(quotient(offsets, records, np.nan), axis=0)
    newest = (records > 0)[::-1].cumsum(axis=0)[::-1] <= STEPS
    lately = (newest * offsets).sum(axis=0) / (newest * records).sum(axis=0)
    least: Float64 = np.maximum(np.minimum(usual, lately), 1.0)
    return least


class _Means(NamedTuple):
    """Means of seconds per record of K pairs, float64 of shape (K,)."""

    records: Float64
    #: Seconds per record, and its relative standard error.
    seconds: Float64
    error: Float64

    @classmethod
    def of(cls, work: Float64) -> "_Means":
        """Return the means. `work` has records, seconds and squares of S steps, (3, S, K).

        If the means of steps differ by more than the spread of single records explains, the
        standard error is increased accordingly.
        """
        records, seconds, squares = work.sum(axis=1)
        count = np.maximum(records, 1.0)
        mean_s = seconds / count
        variance = np.maximum(squares - seconds * mean_s, 0.0) / np.maximum(count - 1.0, 1.0)
        # Compare consecutive steps, because a single change should count only once.
        means = quotient(work[1], work[0], 0.0)
        weight = quotient(work[0, 1:] * work[0, :-1], work[0, 1:] + work[0, :-1], 0.0)
        apart = (weight * np.diff(means, axis=0) ** 2).sum(axis=0)
        steps = (weight > 0).sum(axis=0) + STEPS
        # Differences between a few steps may be chance. So compute a weighted mean of these
        # differences and of the variance of single records, which has the weight of `STEPS` steps.
        variance = np.maximum(variance, (apart + STEPS * variance) / steps)
        error_s = np.hypot(np.sqrt(variance / count), _ROUNDING_S / count)
        error = np.where(records > 1, error_s / np.maximum(mean_s, 1e-12), _UNKNOWN)
        return cls(records, mean_s, error)

    @property
    def spread_s(self) -> Float64:
        """Standard deviation of the seconds per record, float64 of shape (K,)."""
        deviation: Float64 = self.error * self.seconds * np.sqrt(self.records)
        return deviation


def _since_change(work: Float64, member: Places) -> tuple[_Means, float]:
    """Return the means since the last change of each pair, and `MeasuredWork.slower`.

    The newest 32 steps are compared with all earlier ones, then the newest 16, and so on. If there
    are changes, the steps before the clearest one are left out, and the rest is compared again.
    `work`: records, seconds and squares, float64 of shape (3, S, K).
    """
    work, slower = work.copy(), 1.0
    for _ in _NEWEST:  # each change is later than the one before, so these rounds suffice
        clearest, since = np.full(member.size, DEVIATIONS), np.zeros(member.size, np.intp)
        for steps in (count for count in _NEWEST if count < work.shape[1]):
            earlier, newest = _Means.of(work[:, :-steps]), _Means.of(work[:, -steps:])
            counts = np.maximum((earlier.records, newest.records), 1.0)
            enough = counts.min(axis=0) >= _LEAST_RECORDS
            slower = max(slower, _ratio_of_all(earlier, newest, member, enough))
            # Use the larger of the two spreads. Without a change, both should be equal. But among a
            # few records, there may be none of the rare records that take long.
            spread_s = np.maximum(earlier.spread_s, newest.spread_s)
            error_s = np.maximum(spread_s * np.sqrt((1.0 / counts).sum(axis=0)), 1e-12)
            apart = np.where(enough, np.abs(newest.seconds - earlier.seconds) / error_s, 0.0)
            clearer = apart > clearest
            clearest, since = np.where(clearer, apart, clearest), np.where(clearer, steps, since)
        if not since.any():
            break
        places = np.arange(work.shape[1])[:, None]
        work[:, (since > 0) & (places < work.shape[1] - since)] = 0.0
    return _pooled(_Means.of(work), member), slower


def _pooled(means: _Means, member: Places) -> _Means:
    """Return the means with larger errors for partitions whose records seem to differ little.

    The spread of a partition's records is assumed to be at least the mean spread in its consumer's
    partitions. For example, the partition may only by chance have had no records with a slow flush.
    """
    count = np.where((means.records > 1) & (means.seconds >= _LEAST_S), means.records, 0.0)
    spread2 = np.where(count > 0, means.error**2 * count, 0.0)
    usual2 = quotient(np.bincount(member, spread2 * count), np.bincount(member, count), 0.0)
    error = np.sqrt(np.maximum(spread2, usual2[member]) / np.maximum(count, 1.0))
    return means._replace(error=np.where(count > 0, error, means.error))


def _ratio_of_all(earlier: _Means, newest: _Means, member: Places, chosen: Mask) -> float:
    """Return the median factor by which consumers became slower, if all did; else 1.

    The factor is the ratio of newest to earlier seconds per record.
    """
    before_s, now_s = (
        np.bincount(member[chosen], (means.seconds * newest.records)[chosen])
        for means in (earlier, newest)
    )
    ratios = now_s[before_s > 0] / before_s[before_s > 0]
    return float(np.median(ratios)) if ratios.size > 1 and ratios.min() >= CLEARLY else 1.0


class _Steps:
    """Growth of reported counters in S steps between samples, of P partitions, M consumers."""

    @np.errstate(invalid="ignore")  # a counter that was not reported is NaN
    def __init__(self, reports: ReportSeries, series: SampleSeries) -> None:
        self._reports, self._series = reports, series
        #: Growth of `elapsed_s`, `waiting_s` and `handler_s` in each step, of shape (3, S, M).
        self._counters = np.diff(
            np.stack((reports.elapsed_s, reports.waiting_s, reports.handler_s)), axis=1
        )
        #: Growth of `records`, `busy_s` and `squares_s2` in each step, of shape (3, S, P).
        self.work = np.diff(np.stack((reports.records, reports.busy_s, reports.squares_s2)), axis=1)
        #: The consumer that processed the records, int32 of shape (S, P).
        self.by = by = reports.by[1:]
        self._timed = _timed(reports)
        records, busy_s, squares_s2 = self.work
        elapsed_s, waiting_s, handler_s = self._counters
        step = np.arange(len(series) - 1)[:, None]
        in_time = elapsed_s <= series.seconds[:, None] + _age_s(reports.elapsed_s, series)
        alive = (np.diff(reports.token, axis=0) == 0) & (reports.token[1:] >= 0)
        # The report in the first sample may be of any age, so growth since this report may cover
        # too much time. Such growth is not used, but it does not count as impossible.
        alive &= in_time | (reports.elapsed_s[:-1] != reports.elapsed_s[0])
        sound = in_time & (self._counters >= 0).all(axis=0)
        sound &= waiting_s + handler_s <= elapsed_s + SLACK_S
        known = (series.committed[1:] >= 0) & (series.committed[:-1] >= 0)
        advance = np.maximum(np.diff(series.committed, axis=0), 0)
        possible = (self.work >= 0).all(axis=0) & (~known | (records <= advance))
        # The sum of squares is smallest if all measured times are equal. For n records, there are
        # at most 2 n + 1 times: for each record, for the rest of the batch of each record, and for
        # the record in progress at the earlier report.
        least_s2 = np.maximum(busy_s - _EXACT_S, 0.0) ** 2 / (2.0 * records + 1.0)
        possible &= least_s2 <= squares_s2 + _EXACT_S**2
        linked = (by >= 0) & (reports.by[:-1] == by) & alive[step, by] & self._timed[by]
        valid = linked & possible & sound[step, by]
        # The processing times of a consumer's partitions together cannot exceed its elapsed time.
        sound &= ~(self._by_consumer(busy_s, valid) > elapsed_s + SLACK_S)
        valid &= sound[step, by]
        self._valid, self._alive = valid, alive & sound
        #: Whether a partition has valid reports of processed records in each step, bool (S, P).
        self.counts: Mask = valid & (records > 0)
        #: Number of offsets by which the commits advanced in each step, of shape (S, P).
        self.offsets = np.where(known, advance, records)
        self._advance = np.where(known, advance, 0.0)
        #: How often counters grew by an impossible amount.
        self.ignored = int((linked & ~valid).sum())

    def _by_consumer(self, values: Float64, valid: Mask) -> Float64:
        sums = np.zeros(self._counters.shape[1:])
        np.add.at(sums, (valid.nonzero()[0], self.by[valid]), values[valid])
        return sums

    def covered(self) -> Float64:
        """Return the share of each consumer's committed offsets that valid reports cover, (M,)."""
        owner = self._series.owner[1:]
        own = (owner >= 0) & self._alive[np.arange(len(owner))[:, None], owner]
        total = np.bincount(owner[own], self._advance[own], self._alive.shape[1])
        covered = quotient(self._by_consumer(self._advance, self._valid).sum(axis=0), total, 1.0)
        return np.minimum(covered, 1.0)

    def busy(self) -> tuple[Float64, Float64, Float64]:
        """Return the three attributes `busy`, `busy_s` and `waiting` of `MeasuredWork`."""
        records, busy_s, _ = self.work
        elapsed, waiting, handler, assigned, taken = (
            np.where(self._alive, values, 0.0).sum(axis=0)
            for values in (
                *self._counters,
                self._by_consumer(busy_s, self._valid),
                self._by_consumer(records, self._valid),
            )
        )
        pauses = (self._alive & ~(self._reports.paused[1:] <= 0)).any(axis=0)
        # The application may put its records into a queue, and process them in other threads.
        queues = (assigned < _LEAST_S * taken) & (handler < _WORKS * waiting)
        known = (elapsed > 0) & self._timed & ~pauses & ~queues
        newest = slice(-newest_steps(self._series), None)
        recent = np.where(self._alive, self._counters[:2], 0.0)[:, newest]
        recent_s, waited_s = recent.sum(axis=1)
        shows = known & (recent_s >= _COVERED * self._series.seconds[newest].sum())
        return (
            np.where(known, 1.0 - waiting / np.maximum(elapsed, 1e-9), np.nan),
            elapsed - waiting,
            np.where(shows, waited_s / np.maximum(recent_s, 1e-9), 0.0),
        )


def _timed(reports: ReportSeries) -> Mask:
    """Return whether each consumer's newest report has times, bool of shape (M,).

    If other threads process the records, reports have no times. But a consumer notices such threads
    only after some records. Until then, its reports have times, which are wrong. So the newest
    report shows whether the times of all steps can be used.
    """
    reported = reports.token >= 0
    newest = reported.shape[0] - 1 - np.argmax(reported[::-1], axis=0)
    timed: Mask = np.isfinite(reports.paused[newest, np.arange(newest.size)])
    return timed


def _age_s(elapsed_s: Float64, series: SampleSeries) -> Float64:
    """Return the maximum age of the reports in each sample except the last: seconds, (S, M).

    A report that is new in a sample may have been written right after the previous sample. (A
    sample one step before the first is assumed.) `SAMPLE_S` is added, because taking a sample takes
    time.
    """
    before = np.concatenate((series.at[:1] - series.seconds[:1], series.at[:-1]))[:, None]
    repeated = np.diff(elapsed_s, axis=0, prepend=np.nan) == 0
    written = np.maximum.accumulate(np.where(repeated, -np.inf, before), axis=0)
    age_s: Float64 = (series.at[:, None] - written)[:-1]
    return age_s + SAMPLE_S
