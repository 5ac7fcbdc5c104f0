"""Findings from commits: how much of a lag is a backlog, and what makes no progress.

Belongs here: distinguishing records that wait from records that were read and not yet committed.
Belongs elsewhere: capacities of members (`capacities`), and conclusions (`diagnosis`).

The lag of a sample is a backlog plus the records read since the last commit. How to distinguish
the two depends on how the application commits:

- If it commits in every step between samples (automatic commits come every 5 s), the lag of a
  member without a backlog is as old as its last commit. Members that keep up show how old that is.
- If it commits less often, only samples right after a commit count. The backlog is the number of
  records that had arrived before the previous sample, but were not included in the commit.
- If producers send batches less often than samples are taken, the whole lag may have just arrived.
  Only older records that the last commit did not include are a backlog.
- Records after the start of an open transaction are no lag, because consumers with
  `isolation.level=read_committed` cannot read them.
- A lag that stays while nothing arrives is no backlog. It may be the marker of a transaction, or
  records that an application collects until it has a hundred.

So a partition's backlog is given by the first line that applies:

========================================================  =========================
the partition, or its owner                               its backlog
========================================================  =========================
has no more lag than while nothing arrives                0
is stuck or throttled: it does not use its owner's time   0
is committed, or sent to, less often than sampled         not in the last commit
any other                                                 the lag beyond `explained_s`
========================================================  =========================
"""

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from fairlead.domain.analysis.commit_habits import commit_habits
from fairlead.domain.analysis.per_member import any_owned, of_owner, sum_by_owner
from fairlead.domain.analysis.sample_series import Float64, Int64, Mask, SampleSeries, quotient
from fairlead.domain.analysis.stalled import Stalls, stalls
from fairlead.domain.analysis.thresholds import (
    AUTO_COMMIT_S,
    CLEARLY,
    FEW_RECORDS,
    MOSTLY,
    NEGLIGIBLE,
    STEPS,
)

#: Seconds. Largest age of an automatic commit: the commit interval and one call of `poll`.
_AUTO_COMMIT_S: Final = AUTO_COMMIT_S + 0.5


@dataclass(frozen=True, eq=False)
class Commits(Stalls):
    """Findings from the commits in S steps about P partitions and M members."""

    #: Records of each partition that count as consumed in each step, int64 of shape (S, P).
    taken: Int64
    #: Records that a member consumed in each step, float64 of shape (S, M). Partitions that changed
    #: owners, are stuck or are throttled do not count, nor do records that were read again.
    consumed: Float64
    #: Whether a member had a backlog at the end of each step, bool of shape (S, M).
    busy: Mask
    #: Whether a member kept its partitions in each step, and no log was replaced; bool (S, M).
    steady: Mask
    #: For how many seconds of its reading a member typically has no commit yet, because its
    #: partitions are committed rarely, float64 of shape (M,).
    held_back_s: Float64
    #: Records that certainly or probably wait to be read, float64 of shape (P,). 0 for stuck and
    #: throttled partitions.
    backlog: Float64
    #: Largest age of a lag that may only consist of records not yet committed, seconds, (M,).
    explained_s: Float64

    def in_work(self, costs: Float64) -> "Commits":
        """Return the findings with `consumed` in usual records; `costs`: float64 of shape (P,)."""
        return replace(self, consumed=self.per_member.sum(self.taken * costs))

    @property
    def usual_interval_s(self) -> float:
        """Longest of the members' usual commit intervals, seconds; 0 if no member commits."""
        return float(self.interval_s[np.isfinite(self.interval_s)].max(initial=0.0))


def read_commits(series: SampleSeries, *, waits: Mask | None = None) -> Commits:
    """Return the findings from the commits in samples.

    `waits`: whether each member reports that it spent much of the newest steps waiting for records,
    bool of shape (M,).

    Examples
    --------
    Twelve samples, a minute apart; a record a second arrives in each of seven partitions. Three
    seconds before each sample, members a to d commit all that they have read, except for a fifth
    partition of d, which was not committed for seven minutes. Member e commits half of what
    arrives, and f commits every four minutes.

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
    [0.0, 0.0, 0.0, 0.0, 0.0, 273.0, 0.0]
    >>> commits.stuck.nonzero()[0].tolist(), commits.rare.nonzero()[0].tolist()
    ([4], [5])

    A lag of six seconds, and of 38 seconds for e, is explained by records not yet committed. Of the
    330 records of e, chance explains nineteen more.

    >>> commits.explained_s.round().tolist()
    [6.0, 6.0, 6.0, 6.0, 38.0, 6.0]
    """
    if not series.members:
        # Add a member that owns nothing, so that the code below need not handle empty groups.
        series = replace(series, members=("",))
    found = stalls(commit_habits(series), waits)
    per_member, stalled = found.per_member, found.stuck | found.throttled
    free = found.committed & ~stalled
    taken: Int64 = np.where(free, series.advanced, 0)
    arrived = per_member.sum(np.where(free, series.arrived, 0))
    lag = np.where(free, np.maximum(series.lag[1:] - found.rest, 0), 0)
    unpunctual = any_owned(series, found.committed_rarely)
    explained_s = _explained_ages(series, arrived, per_member.sum(lag), unpunctual)
    # Records that a commit did not include although they had arrived before the step.
    left = np.maximum(series.readable_end[:-1] - series.position[1:] - found.rest, 0)
    explained = _with_chance(arrived / series.seconds[:, None] * explained_s)
    batches = _in_batches(series)
    waits_long = ~unpunctual & (per_member.sum(lag * ~batches) > explained)
    consumed = per_member.sum(taken)
    seldom = batches | of_owner(unpunctual, series.owner[-1], none=False)
    backlog = _backlog(found, left, seldom, explained_s)
    return Commits(
        **vars(found),
        taken=taken,
        consumed=consumed,
        busy=per_member.any(_left_by_commits(found, free, left)) | waits_long,
        steady=per_member.steady(),
        held_back_s=_held_back(series, taken * found.committed_rarely, consumed),
        backlog=np.where(~stalled & found.started, backlog, 0.0),
        explained_s=explained_s,
    )


def _with_chance(records: Float64) -> Float64:
    """Return the largest number of records that chance explains if `records` is the mean."""
    return records + 3.0 * np.sqrt(records) + 1.0


def _left_by_commits(found: Stalls, free: Mask, left: Int64) -> Mask:
    """Return whether each partition certainly had a backlog at the end of each step, (S, P).

    This is certain if a commit in the step did not include older records. If a partition is
    committed rarely, a backlog is also certain in all steps between two commits if the second
    commit added fewer records than the first left out.
    """
    steps, columns = np.arange(len(free))[:, None], np.arange(free.shape[1])
    last = np.maximum.accumulate(np.where(free, steps, -1), axis=0)
    following = np.minimum.accumulate(np.where(free, steps, len(free))[::-1], axis=0)[::-1]
    following = np.where(following < len(free), following, last)
    between = (last >= 0) & (left[last, columns] > found.series.advanced[following, columns])
    return free & (left > 0) | between & found.committed_rarely


def _held_back(series: SampleSeries, taken: Int64, consumed: Float64) -> Float64:
    """Return `Commits.held_back_s`.

    A member's partitions are committed independently of each other. So their mean records per
    commit are combined as the square root of the sum of squares.
    """
    squares = (taken.sum(axis=0) / np.maximum((taken > 0).sum(axis=0), 1)) ** 2
    together = sum_by_owner(squares, series.owner[-1], len(series.members))
    seconds = series.now - series.at[0]
    return quotient(np.sqrt(together) * seconds, consumed.sum(axis=0), 0.0)


def _explained_ages(
    series: SampleSeries, arrived: Float64, lag: Float64, unpunctual: Mask
) -> Float64:
    """Return the largest age of a lag that may only be records not yet committed, seconds, (M,).

    When a sample is taken, a commit is between 0 and one commit interval old, half an interval on
    average. So the interval is twice the median age of a member without a backlog. The lower
    quartile of the members' medians counts for the whole group, because more than three quarters of
    the members are rarely behind. If samples and commits are in phase, a member's lag has about the
    same age in every sample; this age is explained, too. The result is at most a step, since these
    members commit in every step.

    `arrived`, `lag`: records of each member in each step, float64 of shape (S, M).
    """
    usable = (arrived >= FEW_RECORDS) & ~unpunctual
    enough = usable.sum(axis=0) > STEPS // 2
    explained_s = np.full(enough.size, series.step)
    if enough.any():
        age_s = lag * series.seconds[:, None] / np.maximum(arrived, 1.0)
        ages_s = np.where(usable, age_s, np.nan)[:, enough]
        usual_s = 2.0 * np.quantile(np.nanmedian(ages_s, axis=0), 0.25)
        explained_s[:] = max(_AUTO_COMMIT_S, usual_s)
        least_s = np.nanmin(ages_s, axis=0)
        in_phase_s = np.where(least_s <= series.step, CLEARLY * least_s, 0.0)
        explained_s[enough] = np.maximum(explained_s[enough], in_phase_s)
    return np.minimum(explained_s, series.step)


def _in_batches(series: SampleSeries) -> Mask:
    """Return whether producers send to a partition less often than samples are taken, (P,).

    That is, nothing arrives in some steps, and at least the mean number of records arrives in the
    next step. The lag of such a partition may have just arrived.
    """
    usual = series.arrived.mean(axis=0) if len(series) > 1 else np.zeros(series.partitions)
    again = (series.arrived[1:] >= MOSTLY * usual) & (series.arrived[:-1] == 0)
    batches: Mask = again.sum(axis=0) >= max(2, NEGLIGIBLE * len(series.arrived))
    return batches & (usual >= FEW_RECORDS)


def _backlog(found: Stalls, left: Int64, seldom: Mask, explained_s: Float64) -> Float64:
    """Return the backlog of each partition, records, float64 of shape (P,).

    If a partition is committed, or sent to, rarely (`seldom`), the backlog is the number of records
    that the last commit did not include (`left`, of shape (S, P)). Without any commit, the backlog
    is the lag minus the usual records per commit. For other partitions, the backlog is the lag that
    neither commits nor chance explain.
    """
    series, again = found.series, found.series.committed_again
    lag: Float64 = np.maximum(series.lag[-1] - found.rest, 0).astype(np.float64)
    if len(series) <= 1:
        return lag
    last = len(again) - 1 - np.argmax(again[::-1], axis=0)
    most = np.where(
        again.any(axis=0),
        left[last, np.arange(series.partitions)],
        np.maximum(series.lag[-1] - found.per_commit, 0.0),
    )
    explains = of_owner(explained_s, series.owner[-1], none=0.0)
    explained = _with_chance(series.arrived[-1] / series.seconds[-1] * explains)
    fresh = np.maximum(lag - explained, 0.0)
    backlog: Float64 = np.where(seldom, np.minimum(most, lag), fresh)
    return backlog
