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

import numpy as np

from fairlead.domain.analysis.commit_age import explained_ages, in_batches
from fairlead.domain.analysis.commit_habits import Habits, commit_habits
from fairlead.domain.analysis.per_member import PerMember, any_owned, of_owner, sum_by_owner
from fairlead.domain.analysis.sample_series import Float64, Int64, Mask, SampleSeries
from fairlead.domain.analysis.stalled import (
    STUCK_S,
    fetched_slowly,
    foreign_partitions,
    left_behind,
    patience,
    silent_members,
    stuck_partitions,
    stuck_under_owners,
)
from fairlead.domain.analysis.thresholds import CLEARLY


@dataclass(frozen=True, eq=False)
class Commits:
    """Findings from the commits in S steps about P partitions and M members.

    Parameters
    ----------
    taken
        Records of each partition that count as consumed in each step, int64 of shape (S, P).
    consumed
        Records that a member consumed in each step, float64 of shape (S, M). Without partitions
        that changed hands or are stuck, and without records that were read again.
    marked
        Whether a member committed anything new in a step, bool of shape (S, M).
    busy
        Whether a member had a backlog at the end of such a step, bool of shape (S, M).
    throughout
        Whether it also had a backlog at the start: records that had arrived by then were not
        committed at the end; bool of shape (S, M).
    steady
        Whether a member kept its partitions during a step, and no log was replaced; bool of shape
        (S, M).
    interval_s
        Usual time between commits of a member, float64 of shape (M,): a step at least. Infinite if
        it never committed although it had records to commit.
    held_back_s
        Mean seconds of reading that are not yet committed, because commits of a member's partitions
        are rare, float64 of shape (M,).
    rare
        Members that commit less often than samples are taken, bool of shape (M,).
    silent
        Members that have committed nothing for far longer than usual although they had records to
        commit, or whose commits are foreign; bool of shape (M,).
    foreign
        Partitions with commits beyond the end of their log, for example because commits were copied
        from another cluster: the owner's position is unknown. bool of shape (P,).
    stuck
        Partitions that wait while their owner commits others, bool of shape (P,).
    started
        Partitions with a commit or an arrival, bool of shape (P,): for others, it is
        unknown where consumers start.
    throttled
        Partitions that fall behind while their owner keeps up with others, or waits for records,
        bool of shape (P,). Clients share their time evenly, so the cause is not the owner's speed.
    read_per_s
        Records of each partition that were read a second recently, float64 of shape (P,).
    backlog
        Records that wait to be read, certainly or probably, float64 of shape (P,). 0 for stuck and
        throttled partitions.
    waiting_s
        Time for which a partition has had records to commit and no commit, also under earlier
        owners, float64 of shape (P,).
    explained_s
        Age of a lag that each member's commits explain, seconds, float64 of shape (M,).
    """

    taken: Int64
    consumed: Float64
    marked: Mask
    busy: Mask
    throughout: Mask
    steady: Mask
    interval_s: Float64
    held_back_s: Float64
    rare: Mask
    silent: Mask
    foreign: Mask
    stuck: Mask
    started: Mask
    throttled: Mask
    read_per_s: Float64
    backlog: Float64
    waiting_s: Float64
    explained_s: Float64

    def in_work(self, series: SampleSeries, costs: Float64) -> "Commits":
        """Return the same with `consumed` in usual records; `costs`: float64 of shape (P,)."""
        return replace(self, consumed=PerMember(series).sum(self.taken * costs))

    @property
    def usual_interval_s(self) -> float:
        """Longest usual interval of a member that commits, seconds; 0 if none does."""
        finite = self.interval_s[np.isfinite(self.interval_s)]
        return float(finite.max(initial=0.0))


def read_commits(
    series: SampleSeries,
    *,
    per_commit: Float64 | None = None,
    waits: Mask | None = None,
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

    Notes
    -----
    O(L P).

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
    [0.0, 0.0, 0.0, 0.0, 0.0, 312.0, 0.0]
    >>> commits.stuck.nonzero()[0].tolist(), commits.rare.nonzero()[0].tolist()
    ([4], [5])

    Commits explain a lag of six seconds, and of nine seconds for e; chance explains nine more
    records of the 330.

    >>> commits.explained_s.round().tolist()
    [6.0, 6.0, 6.0, 6.0, 9.0, 6.0]
    """
    if not series.members:
        # A member that owns nothing, so that the code below need not handle groups without members.
        series = replace(series, members=("",))
    per_commit = records_per_commit(series) if per_commit is None else per_commit
    per_commit = _with_usual(series, per_commit)
    per_member = PerMember(series)
    habits = commit_habits(series, per_member)
    stalls = _stalls(series, per_member, habits, per_commit, waits)
    stalled = stalls.stuck | stalls.throttled
    free = habits.committed & ~stalled
    taken: Int64 = np.where(free, series.advanced, 0)
    consumed = per_member.sum(taken)
    arrived = per_member.sum(np.where(free, series.arrived, 0))
    lag = per_member.sum(free * series.lag[1:])
    explained_s = explained_ages(series, arrived, lag, habits.unpunctual)
    # Records that a commit left although they had arrived before the step.
    proven = np.maximum(series.readable_end[:-1] - series.position[1:] - habits.rest, 0)
    left = _left_by_commits(free, proven, series.advanced, habits.committed_rarely)
    throughout = per_member.any(left)
    explained = arrived / series.seconds[:, None] * explained_s
    batches = in_batches(series, habits.retained)
    lag = np.where(free & ~batches, np.maximum(series.lag[1:] - habits.rest, 0), 0)
    waits = per_member.sum(lag) > explained + 3.0 * np.sqrt(explained) + 1.0
    busy = throughout | ~habits.unpunctual & waits
    owner = series.owner[-1]
    uncommitted = (owner >= 0) & ~habits.committed.any(axis=0)
    seldom = batches | of_owner(habits.unpunctual, owner, none=False) | uncommitted
    most = np.where(
        seldom & ~stalls.overdue,
        _left_by_last(series, series.committed_again, proven, per_commit),
        np.inf,
    )
    backlog = _backlog(series, most, habits.rest, explained_s)
    taken_rarely = np.where(free & habits.committed_rarely, series.advanced, 0)
    return Commits(
        taken=taken,
        consumed=consumed,
        marked=per_member.any(free),
        busy=busy,
        throughout=busy & throughout,
        steady=per_member.steady(),
        interval_s=habits.interval_s,
        held_back_s=_held_back(series, taken_rarely, consumed),
        rare=habits.rare,
        silent=stalls.silent,
        foreign=stalls.foreign,
        stuck=stalls.stuck,
        throttled=stalls.throttled,
        read_per_s=stalls.read_per_s,
        backlog=np.where(~stalled & stalls.started, backlog, 0.0),
        started=stalls.started,
        waiting_s=habits.waiting_s,
        explained_s=explained_s,
    )


@dataclass(frozen=True, eq=False)
class _Stalls:
    """Members and partitions without progress; fields as in `Commits`, and `overdue`.

    Parameters
    ----------
    overdue
        Partitions whose commit is overdue, by their own interval and their owner's, although more
        records wait than usually gather before a commit, bool of shape (P,).
    """

    silent: Mask
    foreign: Mask
    stuck: Mask
    started: Mask
    throttled: Mask
    read_per_s: Float64
    overdue: Mask


def _stalls(
    series: SampleSeries,
    per_member: PerMember,
    habits: Habits,
    per_commit: Float64,
    waits: Mask | None,
) -> _Stalls:
    """Return what makes no progress; `per_commit` and `waits` as in `read_commits`."""
    waiting_s, owned_s, owner = habits.waiting_s, habits.owned_s, series.owner[-1]
    foreign = foreign_partitions(series)
    # Time under earlier owners counts only if the commit is overdue by the partition's interval.
    overdue = habits.beyond_own_interval(series, waiting_s)
    silent_s = np.where(overdue, waiting_s, owned_s)
    silent = silent_members(series, per_member, silent_s, habits.interval_s)
    patience_s = patience(series, habits.interval_s)
    overdue &= waiting_s >= of_owner(patience_s, owner, none=STUCK_S)
    stuck = stuck_partitions(series, habits.committed, habits.marked, owned_s, patience_s)
    stuck &= habits.beyond_own_interval(series, owned_s)
    left, read_per_s = left_behind(series, habits.retained, habits.marked, habits.rare)
    stuck |= left & (read_per_s == 0) & overdue
    stuck |= overdue & stuck_under_owners(series, waiting_s)
    # Records that usually gather before a commit are not stuck.
    gathers = series.lag[-1] <= np.maximum(habits.rest, CLEARLY * per_commit)
    started = (series.last_committed[-1] >= 0) | (series.arrived > 0).any(axis=0)
    stuck &= started & ~gathers
    throttled = left & (read_per_s > 0)
    if waits is not None:
        throttled |= fetched_slowly(series, habits.rest, waits)
    throttled &= ~stuck & ~of_owner(any_owned(series, stuck), owner, none=False)
    return _Stalls(
        silent=silent | any_owned(series, foreign),
        foreign=foreign,
        stuck=stuck,
        started=started,
        throttled=throttled,
        read_per_s=read_per_s,
        overdue=overdue & ~gathers,
    )


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


def _held_back(series: SampleSeries, taken: Int64, consumed: Float64) -> Float64:
    """Return `Commits.held_back_s`; 0 for a member that has read nothing yet.

    Partitions are committed independently of each other: the root of the sum of squares of their
    commits' records.
    """
    members, owner = len(series.members), series.owner[-1]
    if not taken.any():
        return np.zeros(members)
    squares = (taken.sum(axis=0) / np.maximum((taken > 0).sum(axis=0), 1)) ** 2
    together = sum_by_owner(squares, owner, members)
    per_s = consumed.sum(axis=0) / series.seconds.sum()
    held_back_s: Float64 = np.sqrt(together) / np.where(per_s > 0, per_s, np.inf)
    return held_back_s


def _left_by_commits(free: Mask, proven: Int64, advance: Int64, rarely: Mask) -> Mask:
    """Return whether a backlog was certainly left at the end of a step, bool of shape (S, P).

    By the partition's commit in the step. For a partition that is committed `rarely`, also in the
    steps after a commit that left more than the next commit took.
    """
    left: Mask = free & (proven > 0)
    if not rarely.any() or not left.any():
        return left
    steps, columns = np.arange(len(free))[:, None], np.arange(free.shape[1])
    last = np.maximum.accumulate(np.where(free, steps, -1), axis=0)
    following = np.minimum.accumulate(np.where(free, steps, len(free))[::-1], axis=0)[::-1]
    following = np.where(following < len(free), following, last)
    between: Mask = (last >= 0) & (proven[last, columns] > advance[following, columns])
    return left | (between & rarely)


def _left_by_last(series: SampleSeries, free: Mask, proven: Int64, per_commit: Float64) -> Float64:
    """Return the records that the last commit of each partition left, float64 of shape (P,).

    Without a commit: its lag, less the usual records of a commit (`per_commit`).
    """
    left: Float64 = series.lag[-1].astype(np.float64)
    if len(series) <= 1:
        return left
    last = free.shape[0] - 1 - np.argmax(free[::-1], axis=0)
    left = np.maximum(left - per_commit, 0.0)
    return np.where(free.any(axis=0), proven[last, np.arange(series.partitions)], left)


def _backlog(series: SampleSeries, most: Float64, rest: Int64, explained_s: Float64) -> Float64:
    """Return the backlog of each partition, records, float64 of shape (P,).

    `most`, of shape (P,), if it is finite, but at most the lag. Else the lag that commits and
    chance do not explain.
    """
    lag: Float64 = np.maximum(series.lag[-1] - rest, 0).astype(np.float64)
    if len(series) <= 1:
        return lag
    explains = of_owner(explained_s, series.owner[-1], none=0.0)
    explained = series.arrived[-1] / series.seconds[-1] * explains
    fresh = np.maximum(lag - explained - 3.0 * np.sqrt(explained), 0.0)
    return np.where(np.isfinite(most), np.minimum(most, lag), fresh)
