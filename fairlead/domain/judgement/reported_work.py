"""What consumers report of their work: seconds per record, and how busy they are.

Belongs here: figures from differences of reported counters, and which differences count. Does not:
reading reports (`fairlead.domain.work_columns`), nor what partitions cost relative to each other
(`cost_equations`).

Counters grow for as long as a consumer lives. The difference between two samples counts if the same
consumer, with the same token, wrote both reports, and if it is possible: not negative, no more
records than the committed offset advanced, and no more seconds than went by. Whoever may commit for
a group may write reports, too: what is impossible is left out, sample by sample.
"""

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from assignors.problem import Problem
from fairlead.domain.judgement.cost_equations import Equation
from fairlead.domain.judgement.looks import Float64, Int32, Int64, Looks, Mask

Mean = tuple[Float64, Float64, Float64]
"""Records, seconds per record, and the standard error of that as a share of it, each (K,)."""

#: Seconds by which clocks may be off.
SLACK_S: Final = 2.0
#: Nine of ten: the interval of a mean reaches so many standard errors to either side.
_NINE_IN_TEN: Final = 1.645
#: An interval says nothing if it is wider than this factor.
_WIDE: Final = 2.0
#: Seconds per record. Below it an application may just hand records to threads of its own.
_LEAST_S: Final = 1e-4
#: Records that a mean needs.
_LEAST_RECORDS: Final = 20
#: Reports are in whole milliseconds: a difference is off by this, a standard deviation in seconds.
_ROUNDING_S: Final = 0.4e-3
#: Samples at the end that may be told from all before, if the mean has changed.
_ENDS: Final = (2, 4, 8, 16, 32)
#: A mean has changed if it differs by so many standard errors.
_CHANGED: Final = 4.0
#: All consumers have become slower if each takes so many times as long as before, of so many.
_SLOWER: Final = 1.25
_SEVERAL: Final = 2
#: Share of the time busy that must be known by record, for a speed to be more than a lower bound.
_KNOWN_SHARE: Final = 0.8


@dataclass(frozen=True, eq=False)
class ReportSeries:
    """The reports in a group's samples: L samples, P partitions, M consumers as in `Looks`.

    Parameters
    ----------
    by
        Who wrote the report of each partition: int32 of shape (L, P), an index into
        `Looks.members`; -1: there is no report, or it is of nobody who was a member.
    records, busy_s, squares_s2
        Records that the consumer took of the partition, seconds that it spent on them, and the sum
        of the squares of the seconds for each: float64 of shape (L, P).
    token
        A number for each life of a consumer, int64 of shape (L, M); -1: no report.
    elapsed_s, waiting_s, handler_s, calls, paused, at
        The counters of each consumer, float64 of shape (L, M): seconds of its life, of these in
        calls that found nothing, and in the application's code; calls that returned records;
        partitions that it has paused, NaN if records are taken in several tasks; and when the
        report was written, seconds since the epoch by its clock.
    """

    by: Int32
    records: Float64
    busy_s: Float64
    squares_s2: Float64
    token: Int64
    elapsed_s: Float64
    waiting_s: Float64
    handler_s: Float64
    calls: Float64
    paused: Float64
    at: Float64

    def since(self, first: int) -> "ReportSeries":
        """Return the reports of all samples from one on."""
        return ReportSeries(**{its.name: getattr(self, its.name)[first:] for its in fields(self)})


@dataclass(frozen=True, eq=False)
class MeasuredWork:
    """What reports come to: K pairs of a partition and a consumer, M consumers.

    Parameters
    ----------
    partition, member
        Of each pair, intp of shape (K,).
    records, mean_s, error
        Records of the pair that are counted, seconds per record, and the standard error of that as
        a share of it: float64 of shape (K,).
    seconds
        Seconds of the pair in all samples, float64 of shape (K,).
    last_at
        When the pair's last difference was sampled, seconds since the epoch, float64 of shape (K,).
    busy
        Share of the time in which each consumer was not waiting for records, float64 of shape (M,);
        NaN: not known.
    busy_s
        Seconds in which each was busy, float64 of shape (M,).
    reporting
        Which consumers reported, bool of shape (M,).
    slower
        How many times as long records take as before on all consumers, if all have become slower
        together; else 1.
    ignored
        How many differences were impossible.
    """

    partition: npt.NDArray[np.intp]
    member: npt.NDArray[np.intp]
    records: Float64
    mean_s: Float64
    error: Float64
    seconds: Float64
    last_at: Float64
    busy: Float64
    busy_s: Float64
    reporting: Mask
    slower: float
    ignored: int

    def share(self, partition: int, member: int) -> float:
        """Return the share of a consumer's time that a partition's records took; NaN: not known."""
        mine = (self.partition == partition) & (self.member == member)
        if not self.busy[member] > 0:
            return np.nan
        return float(self.seconds[mine].sum() / self.busy_s[member] * self.busy[member])

    @cached_property
    def known(self) -> Mask:
        """Which pairs are known: bool of shape (K,)."""
        low, high = self.interval
        wide = high > _WIDE * low
        return (self.records >= _LEAST_RECORDS) & ~wide & (self.mean_s >= _LEAST_S)

    @cached_property
    def interval(self) -> tuple[Float64, Float64]:
        """Seconds between which each mean lies nine times in ten: float64 of shape (K,), twice.

        Few records whose times differ much are mostly too quick, and seem to differ less than they
        do: that widens the interval.
        """
        width = np.exp(np.minimum(_NINE_IN_TEN * self.error * (1.0 + self.error), 50.0))
        return self.mean_s / width, self.mean_s * width

    def seconds_per_record(self, owner: Int32) -> Float64:
        """Return low, mean and high of each partition on its present owner; NaN: not known.

        Parameters
        ----------
        owner
            int32 of shape (P,).

        Returns
        -------
        float64 of shape (P, 3).
        """
        rows = np.full((owner.size, 3), np.nan)
        mine = self.known & (owner[self.partition] == self.member)
        low, high = self.interval
        rows[self.partition[mine]] = np.stack((low, self.mean_s, high), axis=1)[mine]
        return rows

    def row(self, problem: Problem) -> dict[str, Any]:
        """Return what is known of present members and their partitions, as JSON.

        Returns
        -------
        `partitions`: topic to partition to low, mean and high, in seconds per record. `consumers`:
        name to the share of its time in which it was busy; None: not known.
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
        """Return what consumers can do: records of the usual kind a second, float64 of shape (M,).

        NaN where too much of the time that a consumer is busy is not known by record: it may take
        more records at a time when there are more, in hardly more time.

        Parameters
        ----------
        costs
            Processing time of each partition's record in usual records, float64 of shape (P,).
        """
        known, count = self.known, self.busy.size
        member, records = self.member[known], self.records[known]
        work = np.bincount(member, records * costs[self.partition[known]], count)
        seconds = np.bincount(member, records * self.mean_s[known], count)
        share = np.bincount(member, self.seconds[known], count) / np.maximum(self.busy_s, 1e-9)
        with np.errstate(invalid="ignore", divide="ignore"):
            per_s: Float64 = work / seconds * np.minimum(share, 1.0)
        return np.where((share >= _KNOWN_SHARE) & (seconds > 0), per_s, np.nan)

    def equations(self, members: tuple[str, ...]) -> list[Equation]:
        """Return what each pair says of costs and speeds: so many records took so many seconds."""
        return [
            Equation(
                member=members[self.member[pair]],
                at=float(self.last_at[pair]),
                seconds=float(self.records[pair] * self.mean_s[pair]),
                limited=True,
                partitions=self.partition[pair : pair + 1],
                records=self.records[pair : pair + 1],
                blur_s=float(self.error[pair] * self.records[pair] * self.mean_s[pair])
                / np.sqrt(2.0),
            )
            for pair in np.flatnonzero(self.known).tolist()
        ]


def reported_work(reports: ReportSeries, looks: Looks) -> MeasuredWork:
    """Return what reports come to.

    Parameters
    ----------
    reports
        Of the same samples as `looks`.
    looks
        The samples, of the last hour or so.

    Notes
    -----
    A pair's mean is that of the last hour; or since it changed, if the samples at the end differ
    from all before by more than chance explains.
    """
    steps = _steps(reports, looks)
    count = len(looks.members)
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
    last = looks.at[1:][mine.shape[0] - 1 - mine[::-1].argmax(axis=0)] if pairs.size else mean_s
    return MeasuredWork(
        partition=partition,
        member=member,
        records=records,
        mean_s=mean_s,
        error=error,
        seconds=sums[1].sum(axis=0),
        last_at=last,
        busy=steps.busy,
        busy_s=steps.worked_s,
        reporting=(reports.token[-1] >= 0),
        slower=_slower(splits, member),
        ignored=steps.ignored,
    )


def _splits(sums: list[Float64]) -> list[tuple[Mean, Mean]]:
    """Return the means of the samples at the end and of all before, for several lengths."""
    whole = [values.sum(axis=0) for values in sums]
    splits = []
    for steps in _ENDS:
        if steps < sums[0].shape[0]:
            late = [values[-steps:].sum(axis=0) for values in sums]
            early = [all_ - its for all_, its in zip(whole, late, strict=True)]
            splits.append((_mean(*late), _mean(*early)))
    return splits


def _slower(splits: list[tuple[Mean, Mean]], member: npt.NDArray[np.intp]) -> float:
    """Return how many times as long records take as before on all consumers; 1: not on all.

    Parameters
    ----------
    splits
        Of K pairs.
    member
        The consumer of each pair, intp of shape (K,).
    """
    found = 1.0
    for late, early in splits:
        enough = np.minimum(late[0], early[0]) >= _LEAST_RECORDS
        if np.unique(member[enough]).size < _SEVERAL:
            continue
        weight = early[1] * late[0]
        count = int(member.max()) + 1
        before = np.bincount(member[enough], weight[enough], count)
        now = np.bincount(member[enough], (late[1] * late[0])[enough], count)
        times = now[before > 0] / before[before > 0]
        if times.min() >= _SLOWER:
            found = max(found, float(np.median(times)))
    return found


def _since_change(sums: list[Float64], splits: list[tuple[Mean, Mean]]) -> Mean:
    """Return records, mean and its relative error of K pairs, since each last changed.

    Parameters
    ----------
    sums
        Records, seconds and squares of S steps and K pairs, each float64 of shape (S, K).
    splits
        Of the same.
    """
    found = _mean(*(values.sum(axis=0) for values in sums))
    furthest = np.full(found[0].size, _CHANGED)
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
    """Return records, seconds per record, and the standard error of that as a share of it."""
    count = np.maximum(records, 1.0)
    mean_s = seconds / count
    spread = np.maximum(squares - seconds * mean_s, 0.0) / np.maximum(count - 1.0, 1.0)
    error_s = np.hypot(np.sqrt(spread / count), _ROUNDING_S / count)
    return records, mean_s, np.where(records > 1, error_s / np.maximum(mean_s, 1e-12), 1e6)


@dataclass(frozen=True, eq=False)
class _Steps:
    """The differences between S + 1 samples: `counts` says which are possible, shape (S, P)."""

    counts: Mask
    by: Int32
    records: Float64
    busy_s: Float64
    squares_s2: Float64
    busy: Float64
    worked_s: Float64
    ignored: int


def _steps(reports: ReportSeries, looks: Looks) -> _Steps:
    """Return the differences from sample to sample."""
    by = reports.by[1:]
    who = np.maximum(by, 0)
    dt = looks.seconds[:, None]
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
            & (elapsed <= dt + _stale_s(reports.elapsed_s, looks) + SLACK_S)
        )
        records, busy_s, squares = (
            np.diff(values, axis=0)
            for values in (reports.records, reports.busy_s, reports.squares_s2)
        )
        linked = (by >= 0) & (reports.by[:-1] == by)
        linked &= np.take_along_axis(same_life, who, axis=1) if same_life.size else False
        read = np.diff(looks.committed, axis=0)
        committed = (looks.committed[1:] >= 0) & (looks.committed[:-1] >= 0)
        possible = (
            np.isfinite(records + busy_s + squares)
            & (records >= 0)
            & (busy_s >= 0)
            & (squares >= 0)
            & (~committed | (records <= np.maximum(read, 0)))
        )
        if linked.size:
            possible &= np.take_along_axis(sound, who, axis=1)
            possible &= busy_s <= np.take_along_axis(elapsed, who, axis=1) + SLACK_S
    counts = linked & possible
    # All that a consumer spent on partitions it cannot have spent in less time than went by.
    counted = np.zeros_like(elapsed)
    rows = np.broadcast_to(np.arange(len(by))[:, None], by.shape)
    np.add.at(counted, (rows[counts], by[counts]), busy_s[counts])
    with np.errstate(invalid="ignore"):
        overbooked = counted > elapsed + SLACK_S
    if counts.size:
        counts &= ~np.take_along_axis(overbooked, who, axis=1)
    alive = same_life & sound & ~overbooked
    elapsed, waiting = (np.where(alive, values, 0.0).sum(axis=0) for values in (elapsed, waiting))
    paused = np.nan_to_num(reports.paused[1:], nan=1.0)
    clear = elapsed > 0
    clear &= ~((paused > 0) & alive).any(axis=0)
    busy = np.where(clear, 1.0 - waiting / np.where(clear, elapsed, 1.0), np.nan)
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


def _stale_s(values: Float64, looks: Looks) -> Float64:
    """Return how much older than its sample a report may be: seconds, shape of the differences.

    A report that has not changed since an earlier sample may have been written just after the one
    before that.
    """
    same = np.zeros(values.shape, dtype=bool)
    same[1:] = values[1:] == values[:-1]
    before = np.concatenate((looks.at[:1], looks.at[:-1]))[:, None]
    written = np.maximum.accumulate(np.where(same, -np.inf, before), axis=0)
    stale: Float64 = looks.at[:, None] - written
    return stale[:-1]
