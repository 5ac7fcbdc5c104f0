"""Findings from commits: how much of a lag is a backlog, and what makes no progress.

Belongs here: distinguishing records that wait from records that were read and not yet committed.
Does not: capacities of members (`capacities`), nor conclusions (`diagnosis`).

The lag of a sample is a backlog plus the records read since the last commit. The latter depend on
how the application commits:

- If it commits in every step between samples (automatic commits come every 5 s), the lag of a
  sample is as old as the last commit. Members that keep up show its largest age.
- If it commits less often, only the sample after a commit counts: records that had arrived before
  the sample ahead of the commit, and were not committed, are a backlog.
- If producers send batches less often than samples are taken, the lag may have arrived just now.
  Earlier records that a commit left are a backlog.
- Records behind an open transaction are no lag: consumers that read committed cannot read them.
- A lag that a partition has while nothing happens is no backlog: the marker of a transaction, or
  records that an application collects until it has a hundred.

So a partition's backlog is, by the first line that applies:

========================================================  =========================
the partition, or its owner                               its backlog
========================================================  =========================
has no more lag than when nothing happens                 0
is stuck or throttled: it does not use its owner's time   0
is committed, or sent to, less often than sampled         left by the last commit
any other                                                 the lag beyond `explained_s`
========================================================  =========================
"""

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from fairlead.domain.analysis.commit_habits import Habits, commit_habits
from fairlead.domain.analysis.per_member import PerMember, of_owner, sum_by_owner
from fairlead.domain.analysis.sample_series import Float64, Int64, Mask, SampleSeries
from fairlead.domain.analysis.stalled import Stalls, stalls
from fairlead.domain.analysis.thresholds import (
    AUTO_COMMIT_S,
    CLEARLY,
    FEW_RECORDS,
    MOSTLY,
    NEGLIGIBLE,
    STEPS,
)

#: Seconds. Largest age of an automatic commit: its interval, and a call of `poll`.
_AUTO_COMMIT_S: Final = AUTO_COMMIT_S + 0.5
#: Maximum ratio of the upper to the lower quartile of ages: with intervals near the time between
#: samples, ages change slowly, and quartiles differ by chance.
_APART: Final = 2.0


@dataclass(frozen=True, eq=False)
class Commits(Stalls):
    """Findings from the commits in S steps about P partitions and M members."""

    #: Records of each partition that count as consumed in each step, int64 of shape (S, P).
    taken: Int64
    #: Records that a member consumed in each step, float64 of shape (S, M). Without partitions that
    #: changed hands or are stuck, and without records that were read again.
    consumed: Float64
    #: In each step, bool of shape (S, M): whether a member committed anything new (marked); had a
    #: backlog at the end (busy); kept its partitions, and no log was replaced (steady).
    marked: Mask
    busy: Mask
    steady: Mask
    #: Usual time between commits of a member, float64 of shape (M,): a step at least. Infinite if
    #: it never committed although it had records to commit.
    interval_s: Float64
    #: Mean seconds of reading that are not yet committed, because commits of a member's partitions
    #: are rare, float64 of shape (M,).
    held_back_s: Float64
    #: Members that commit less often than samples are taken, bool of shape (M,).
    rare: Mask
    #: Records that wait to be read, certainly or probably, float64 of shape (P,). 0 for stuck and
    #: throttled partitions.
    backlog: Float64
    #: Time for which a partition has had records to commit and no commit, also under earlier
    #: owners, float64 of shape (P,).
    waiting_s: Float64
    #: Age of a lag that each member's commits explain, seconds, float64 of shape (M,).
    explained_s: Float64

    def in_work(self, series: SampleSeries, costs: Float64) -> "Commits":
        """Return the same with `consumed` in usual records; `costs`: float64 of shape (P,)."""
        return replace(self, consumed=PerMember(series).sum(self.taken * costs))

    @property
    def usual_interval_s(self) -> float:
        """Longest usual interval of a member that commits, seconds; 0 if none does."""
        return float(self.interval_s[np.isfinite(self.interval_s)].max(initial=0.0))


def read_commits(
    series: SampleSeries, *, per_commit: Float64 | None = None, waits: Mask | None = None
) -> Commits:
    """Return the findings from the commits in samples.

    Parameters
    ----------
    series
        Samples of about the last hour, two at least.
    per_commit
        Usual records of a commit of each partition (`records_per_commit`), float64 of shape (P,).
        None: from these samples.
    waits
        Members that report that they waited for much of the newest steps, bool of shape (M,).

    Examples
    --------
    Twelve samples, a minute apart; a record a second arrives in each of seven partitions. Members a
    to d commit what they have read three seconds before each sample, but d has a fifth partition
    that was not committed for seven minutes. Member e commits half of what arrives, and f
    commits every four minutes.

    >>> sample = np.arange(12)
    >>> prompt = 997 + 60 * sample
    >>> stuck, half, rare = np.minimum(prompt, prompt[4]), 1000 + 30 * sample, prompt // 240 * 240
    >>> committed = np.column_stack([prompt, prompt, prompt, prompt, stuck, half, rare])
    >>> end = np.repeat(1000 + 60 * sample[:, None], 7, axis=1)
    >>> owner = np.tile(np.array([0, 1, 2, 3, 3, 4, 5], np.int32), (12, 1))
    >>> series = SampleSeries(60.0 * sample, 0 * end, end, committed, tuple("abcdef"), owner)
    >>> commits = read_commits(series)
    >>> series.lag[-1].tolist()
    [3, 3, 3, 3, 423, 330, 220]
    >>> commits.backlog.round().tolist()
    [0.0, 0.0, 0.0, 0.0, 0.0, 274.0, 0.0]
    >>> commits.stuck.nonzero()[0].tolist(), commits.rare.nonzero()[0].tolist()
    ([4], [5])

    Commits explain a lag of six seconds, and of 38 seconds for e; chance explains eighteen more
    records of the 330.

    >>> commits.explained_s.round().tolist()
    [6.0, 6.0, 6.0, 6.0, 38.0, 6.0]
    """
    if not series.members:
        # A member that owns nothing, so that the code below need not handle groups without members.
        series = replace(series, members=("",))
    habits = commit_habits(series)
    per_member, owner = habits.per_member, series.owner[-1]
    per_commit = records_per_commit(series) if per_commit is None else per_commit
    per_commit = _with_usual(series, per_commit)
    found = stalls(habits, per_commit, waits)
    stalled = found.stuck | found.throttled
    free = habits.committed & ~stalled
    taken: Int64 = np.where(free, series.advanced, 0)
    arrived = per_member.sum(np.where(free, series.arrived, 0))
    lag = per_member.sum(np.where(free, series.lag[1:], 0))
    explained_s = _explained_ages(series, arrived, lag, habits.unpunctual)
    # Records that a commit left although they had arrived before the step.
    left = np.maximum(series.readable_end[:-1] - series.position[1:] - habits.rest, 0)
    throughout = per_member.any(_left_by_commits(habits, free, left))
    explained = arrived / series.seconds[:, None] * explained_s
    batches = _in_batches(series, habits.retained)
    fresh = np.where(free & ~batches, np.maximum(series.lag[1:] - habits.rest, 0), 0)
    waits_long = per_member.sum(fresh) > explained + 3.0 * np.sqrt(explained) + 1.0
    busy = throughout | ~habits.unpunctual & waits_long
    uncommitted = (owner >= 0) & ~habits.committed.any(axis=0)
    seldom = batches | of_owner(habits.unpunctual, owner, none=False) | uncommitted
    consumed = per_member.sum(taken)
    backlog = _backlog(habits, seldom & ~found.overdue, left, per_commit, explained_s)
    return Commits(
        **vars(found),
        taken=taken,
        consumed=consumed,
        marked=per_member.any(free),
        busy=busy,
        steady=per_member.steady(),
        interval_s=habits.interval_s,
        held_back_s=_held_back(series, taken * habits.committed_rarely, consumed),
        rare=habits.rare,
        backlog=np.where(~stalled & found.started, backlog, 0.0),
        waiting_s=habits.waiting_s,
        explained_s=explained_s,
    )


def _left_by_commits(habits: Habits, free: Mask, left: Int64) -> Mask:
    """Return whether a backlog was certainly left at the end of a step, bool of shape (S, P).

    The partition's commit in the step shows this. A rarely committed partition also had a backlog
    in the steps after a commit that left more records than the next commit took.
    """
    steps, columns = np.arange(len(free))[:, None], np.arange(free.shape[1])
    last = np.maximum.accumulate(np.where(free, steps, -1), axis=0)
    following = np.minimum.accumulate(np.where(free, steps, len(free))[::-1], axis=0)[::-1]
    following = np.where(following < len(free), following, last)
    between = (last >= 0) & (left[last, columns] > habits.series.advanced[following, columns])
    return free & (left > 0) | between & habits.committed_rarely


def _held_back(series: SampleSeries, taken: Int64, consumed: Float64) -> Float64:
    """Return `Commits.held_back_s`; 0 for a member that has read nothing yet.

    Partitions are committed independently of each other: the root of the sum of squares of their
    commits' records.
    """
    if not taken.any():
        return np.zeros(len(series.members))
    squares = (taken.sum(axis=0) / np.maximum((taken > 0).sum(axis=0), 1)) ** 2
    together = sum_by_owner(squares, series.owner[-1], len(series.members))
    per_s = consumed.sum(axis=0) / series.seconds.sum()
    held_back_s: Float64 = np.sqrt(together) / np.where(per_s > 0, per_s, np.inf)
    return held_back_s


def _explained_ages(series: SampleSeries, arrived: Float64, lag: Float64, rare: Mask) -> Float64:
    """Return the age of a lag that each member's commits explain, seconds, float64 of shape (M,).

    The age of a commit in a sample is between 0 and the commit interval; the median is half of it.
    The quartiles of the members' medians are used for the whole group: three quarters of a group
    are rarely behind. If samples and commits are in phase, a member has about the same age in every
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
    age_s = lag * series.seconds[:, None] / np.maximum(arrived, 1.0)
    ages = np.where(usable, age_s, np.nan)[:, enough]
    low, high = np.quantile(np.nanmedian(ages, axis=0), (0.25, 0.75))
    automatic = low <= _AUTO_COMMIT_S
    usual_s = max(_AUTO_COMMIT_S, 2.0 * low) if automatic else 2.0 * min(high, _APART * low)
    explained = np.full(rare.size, usual_s)
    least = np.nanmin(ages, axis=0)
    own = np.where(least <= series.step, CLEARLY * least, 0.0)
    explained[enough] = np.maximum(explained[enough], own)
    capped: Float64 = np.minimum(explained, series.step)
    return capped


def _in_batches(series: SampleSeries, retained: Mask) -> Mask:
    """Return whether producers of a partition send batches less often than samples are taken, (P,).

    Nothing arrives in some steps, and at least the mean in the next one. The lag of such a
    partition may have arrived just now.
    """
    steps = len(retained)
    usual = series.arrived.sum(axis=0) / max(steps, 1)
    again = (series.arrived[1:] >= MOSTLY * usual) & (series.arrived[:-1] == 0) & retained[1:]
    enough = again.sum(axis=0) >= max(2, NEGLIGIBLE * steps)
    batches: Mask = enough & (usual >= FEW_RECORDS)
    return batches


def records_per_commit(series: SampleSeries) -> Float64:
    """Return the mean records of a commit of each partition, float64 of shape (P,); 0: none."""
    commits = (series.advanced > 0).sum(axis=0)
    usual: Float64 = series.advanced.sum(axis=0) / np.maximum(commits, 1)
    return usual


def _with_usual(series: SampleSeries, per_commit: Float64) -> Float64:
    """Return `per_commit`, with the owner's mean for partitions without a commit, (P,)."""
    owner, count = series.owner[-1], len(series.members)
    committed = sum_by_owner(per_commit > 0, owner, count)
    mean = sum_by_owner(per_commit, owner, count) / np.maximum(committed, 1)
    return np.where(per_commit > 0, per_commit, of_owner(mean, owner, none=0.0))


def _backlog(
    habits: Habits, seldom: Mask, left: Int64, per_commit: Float64, explained_s: Float64
) -> Float64:
    """Return the backlog of each partition, records, float64 of shape (P,).

    If commits or batches of producers are rare (`seldom`): the records that the last commit `left`,
    of shape (S, P); without a commit, the lag minus the usual records of a commit. Otherwise: the
    lag that commits and chance do not explain.
    """
    series, again = habits.series, habits.series.committed_again
    lag: Float64 = np.maximum(series.lag[-1] - habits.rest, 0).astype(np.float64)
    if len(series) <= 1:
        return lag
    last = len(again) - 1 - np.argmax(again[::-1], axis=0)
    most = np.where(
        again.any(axis=0),
        left[last, np.arange(series.partitions)],
        np.maximum(series.lag[-1] - per_commit, 0.0),
    )
    explains = of_owner(explained_s, series.owner[-1], none=0.0)
    explained = series.arrived[-1] / series.seconds[-1] * explains
    fresh = np.maximum(lag - explained - 3.0 * np.sqrt(explained), 0.0)
    backlog: Float64 = np.where(seldom, np.minimum(most, lag), fresh)
    return backlog
