"""Findings from commits: how much of a lag is a backlog, and what makes no progress.

Belongs here: distinguishing records that wait to be read from records that were read, but not yet
committed. Belongs elsewhere: capacities of members (`capacities`), and conclusions (`diagnosis`).

The lag in a sample consists of a backlog (records that wait to be read) and of records that were
read since the last commit. How to distinguish the two depends on how the application commits:

- If it commits between any two samples (automatic commits come every 5 s), the lag of a member
  without a backlog has arrived since its last commit. The usual age of the last commit is estimated
  from members that keep up.
- If it commits less often, only samples right after a commit are used. The backlog is the number of
  records that had arrived before the previous sample, but were not included in the commit.
- If producers send batches less often than samples are taken, the whole lag may have just arrived.
  Only older records that the last commit did not include are a backlog.
- Records after the start of an open transaction are no lag, because consumers with
  `isolation.level=read_committed` cannot read them.
- A lag that remains while nothing arrives is no backlog. It may be the marker of a transaction, or
  records that an application collects until it has, for example, a hundred records to process.

The first line that applies gives the backlog of a partition:

========================================================  =========================
the partition, or its owner                               its backlog
========================================================  =========================
has no more lag than while nothing arrives                0
is stuck or throttled: its lag is not due to load         0
is committed or gets records less than once per sample    what the last commit left out
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

#: Seconds. Largest age of an automatic commit: the commit interval plus the time of one call of
#: `poll`.
_AUTO_COMMIT_S: Final = AUTO_COMMIT_S + 0.5


@dataclass(frozen=True, eq=False)
class Commits(Stalls):
    """Findings about P partitions and M members, from the commits in S steps between samples."""

    #: Records of each partition that its owner consumed in each step, int64 of shape (S, P); 0 if
    #: the partition changed owners in the step, or is stuck or throttled.
    taken: Int64
    #: Records that each member consumed in each step, float64 of shape (S, M). Not counted:
    #: partitions that changed owners, are stuck or are throttled, and steps in which the committed
    #: offset decreased.
    consumed: Float64
    #: Whether each member had a backlog at the end of each step, bool of shape (S, M).
    busy: Mask
    #: Whether each member kept its partitions in each step, and no topic was recreated; bool (S,
    #: M).
    steady: Mask
    #: Typical seconds of reading between two commits of a member, float64 of shape (M,): records
    #: per commit divided by records a second. Only rarely committed partitions are included.
    held_back_s: Float64
    #: Records that certainly or probably wait to be read, float64 of shape (P,); 0 for stuck and
    #: throttled partitions.
    backlog: Float64
    #: Maximum age, in seconds, of the lag of a member without a backlog, (M,). Such lag consists
    #: only of records that were read, but not yet committed.
    explained_s: Float64

    def in_work(self, costs: Float64) -> "Commits":
        """Return the findings with `consumed` weighted by the partitions' costs, (P,)."""
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
    There are twelve samples, a minute apart. A record a second arrives in each of seven partitions.
    Three seconds before each sample, members a to d commit all records that have arrived. But the
    second partition of d has had no commit for seven minutes. Member e commits half of the records
    that arrive, and f commits every four minutes.

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

    Records of the last six seconds (for e: 38 seconds) may have been read, but not yet committed.
    So of the 330 records of e, 38 are no backlog, and another nineteen may be due to chance.

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
    # Records that a commit did not include, although they had arrived before the step began.
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
    """Return the largest number of records to expect by chance if the mean is `records`."""
    return records + 3.0 * np.sqrt(records) + 1.0


def _left_by_commits(found: Stalls, free: Mask, left: Int64) -> Mask:
    """Return whether each partition certainly had a backlog at the end of each step, (S, P).

    A backlog is certain if a commit in the step did not include records that had arrived before the
    step. For rarely committed partitions, each commit is also compared with the next commit. If the
    next commit advances by fewer records than the earlier commit left unread, there was a backlog
    in all steps from the earlier to the next commit.
    """
    steps, columns = np.arange(len(free))[:, None], np.arange(free.shape[1])
    last = np.maximum.accumulate(np.where(free, steps, -1), axis=0)
    following = np.minimum.accumulate(np.where(free, steps, len(free))[::-1], axis=0)[::-1]
    following = np.where(following < len(free), following, last)
    between = (last >= 0) & (left[last, columns] > found.series.advanced[following, columns])
    return free & (left > 0) | between & found.committed_rarely


def _held_back(series: SampleSeries, taken: Int64, consumed: Float64) -> Float64:
    """Return `Commits.held_back_s`, from the records in rarely committed partitions (`taken`).

    A member's partitions are committed at independent times. So their mean numbers of records per
    commit are combined as the square root of the sum of their squares.
    """
    squares = (taken.sum(axis=0) / np.maximum((taken > 0).sum(axis=0), 1)) ** 2
    together = sum_by_owner(squares, series.owner[-1], len(series.members))
    seconds = series.now - series.at[0]
    return quotient(np.sqrt(together) * seconds, consumed.sum(axis=0), 0.0)


def _explained_ages(
    series: SampleSeries, arrived: Float64, lag: Float64, unpunctual: Mask
) -> Float64:
    """Return the maximum age of the lag of a member without a backlog, seconds, (M,).

    When a sample is taken, the last commit is between 0 and one commit interval old, half an
    interval on average. So the interval is estimated as twice the median age of the lag of a member
    without a backlog. More than three quarters of the members are usually without a backlog, so the
    lower quartile of the members' medians is used for all members. If samples and commits are in
    phase, the lag of a member has about the same age in every sample. If this age is higher than
    the estimated interval, it is the result for this member. The result is at most the length of a
    step, because the members that are used here commit in every step.

    `arrived`, `lag`: records of each member in each step, float64 of shape (S, M). `unpunctual`:
    members with a rarely committed partition, which are left out.
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
    """Return the partitions to which producers send less often than samples are taken, bool (P,).

    True if in several steps nothing arrives, and in the step after each of them at least the mean
    number of records arrives. The lag of such a partition may have just arrived.
    """
    usual = series.arrived.mean(axis=0) if len(series) > 1 else np.zeros(series.partitions)
    again = (series.arrived[1:] >= MOSTLY * usual) & (series.arrived[:-1] == 0)
    batches: Mask = again.sum(axis=0) >= max(2, NEGLIGIBLE * len(series.arrived))
    return batches & (usual >= FEW_RECORDS)


def _backlog(found: Stalls, left: Int64, seldom: Mask, explained_s: Float64) -> Float64:
    """Return the backlog of each partition, records, float64 of shape (P,).

    `seldom` are partitions that are committed rarely, or to which producers send rarely: their
    backlog is the number of records that the last commit did not include (`left`, of shape (S, P)).
    If there was no commit, it is the lag minus the usual records per commit. For all other
    partitions, the backlog is the part of the lag that is older than `explained_s`, minus the
    records that may be due to chance.
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
