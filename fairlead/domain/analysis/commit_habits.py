"""How applications commit: intervals between commits, and the lag that stays without arrivals.

Belongs here: which steps between samples have commits, and how long partitions wait for a commit.
Belongs elsewhere: which lag is a backlog (`commits`), and what makes no progress (`stalled`).
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from fairlead.domain.analysis.per_member import PerMember, of_owner, sum_by_owner
from fairlead.domain.analysis.sample_series import Float64, Int64, Mask, SampleSeries
from fairlead.domain.analysis.thresholds import CLEARLY, FEW_RECORDS, NEGLIGIBLE, SEVERAL, STEPS

#: Seconds. Minimum time without a commit before a member is silent or a partition is stuck.
STUCK_S: Final = 120.0


@dataclass(frozen=True, eq=False)
class Habits:
    """How M members commit P partitions in S steps between samples."""

    series: SampleSeries
    per_member: PerMember
    #: Lag of each partition at rest, which is no backlog (see `at_rest`), int64 of shape (P,).
    rest: Int64
    #: Whether a partition kept its owner in each step, and whether it was also committed; bool of
    #: shape (S, P).
    retained: Mask
    committed: Mask
    #: Whether a member committed any partition in each step, bool of shape (S, M).
    marked: Mask
    #: Mean records per commit of each partition, float64 of shape (P,). A partition without a
    #: commit gets the mean of its owner's other partitions.
    per_commit: Float64
    #: Seconds for which each partition has had records to commit, but no commit, float64 of shape
    #: (P,). `owned_s` counts only the time since it has had its present owner.
    waiting_s: Float64
    owned_s: Float64
    #: Usual seconds between commits of a member, at least one step, float64 of shape (M,). Infinite
    #: if the member had records to commit and never committed.
    interval_s: Float64
    #: Unusually many seconds without a commit. For a member, (M,): several of its commit intervals.
    #: For a partition, (P,): the same for its owner, and more than its second longest wait.
    silence_s: Float64
    patience_s: Float64
    #: Members that commit, and partitions that are committed, less often than samples are taken:
    #: bool of shape (M,), (P,).
    rare: Mask
    committed_rarely: Mask


def commit_habits(series: SampleSeries) -> Habits:
    """Return how members commit their partitions."""
    rest, owner, per_member = at_rest(series), series.owner, PerMember(series)
    same = (owner[1:] == owner[:-1]) & (owner[1:] >= 0)
    retained, uncommitted = same & series.in_one_log[:-1], series.lag > rest
    if series.latest:
        # Consumers that start at the end of a log have no lag before their first commit.
        arrived = np.vstack((np.zeros_like(rest), series.arrived)).cumsum(axis=0)
        uncommitted |= (series.committed < 0) & (arrived > 0)
    committed = same & series.committed_again
    due = retained & (uncommitted[:-1] | committed)
    marked = per_member.any(committed)
    interval_s, rare = _intervals(series, marked, per_member.any(due))
    unread = uncommitted[:-1] & ~series.committed_again & series.in_one_log[:-1]
    usual_s = np.where(np.isfinite(interval_s), interval_s, series.step)
    silence_s = np.maximum(SEVERAL * usual_s, max(STEPS * series.step, STUCK_S))
    # A consumer that reads one partition after another lets the other partitions wait.
    waited_s = CLEARLY * _waited_twice(series, unread)
    return Habits(
        series=series,
        per_member=per_member,
        rest=rest,
        retained=retained,
        committed=committed,
        marked=marked,
        per_commit=_records_per_commit(series),
        waiting_s=time_since(series, unread, uncommitted[-1]),
        owned_s=time_since(series, unread & same, uncommitted[-1]),
        interval_s=interval_s,
        silence_s=silence_s,
        patience_s=np.maximum(of_owner(silence_s, owner[-1], none=STUCK_S), waited_s),
        rare=rare,
        committed_rarely=_intervals(series, committed, due)[1],
    )


def time_since(series: SampleSeries, still: Mask, now: Mask) -> Float64:
    """Return for how many seconds N conditions have been true without a break, (N,).

    `still`: whether each is true in each step, (S, N); `now`: in the last sample, (N,).
    """
    holds = np.logical_and.accumulate(np.vstack((still, now))[::-1], axis=0)
    first = len(series) - holds.sum(axis=0)
    since: Float64 = series.at[np.minimum(first, len(series) - 1)]
    return series.now - since


def _waited_twice(series: SampleSeries, still: Mask) -> Float64:
    """Return each partition's second longest wait that ended with a commit, seconds, (P,)."""
    began = np.where(still, 0, np.arange(1, len(series))[:, None])
    began = np.maximum.accumulate(began, axis=0)[:-1]
    ended = still[:-1] & series.committed_again[1:]
    waited = np.where(ended, series.at[1:-1, None] - series.at[began], 0.0)
    second: Float64 = np.sort(np.vstack((np.zeros((2, series.partitions)), waited)), axis=0)[-2]
    return second


def _intervals(series: SampleSeries, marked: Mask, due: Mask) -> tuple[Float64, Mask]:
    """Return the usual times between commits of N members or partitions, and who commits rarely.

    Commits are rare if more than a tenth of the steps with records to commit, and more than one
    such step, have no commit.

    Parameters
    ----------
    marked, due
        Whether each member or partition committed in a step, and whether it had records to commit;
        bool of shape (S, N).
    """
    marks, steps_due = marked.sum(axis=0), due.sum(axis=0)
    # If there are several commits, the time since the last one must not lengthen the interval.
    until_last = np.logical_or.accumulate(marked[::-1], axis=0)[::-1] | (marks <= SEVERAL)
    due_s = series.seconds @ (until_last & due)
    never = np.where(steps_due > 0, np.inf, 0.0)
    interval: Float64 = np.where(marks > 0, due_s / np.maximum(marks, 1), never)
    rare = (marks > 0) & (steps_due - marks > np.maximum(NEGLIGIBLE * steps_due, 1))
    return np.maximum(interval, series.step), rare


def _records_per_commit(series: SampleSeries) -> Float64:
    owner, count = series.owner[-1], len(series.members)
    mean = series.advanced.sum(axis=0) / np.maximum((series.advanced > 0).sum(axis=0), 1)
    total, committed = (sum_by_owner(values, owner, count) for values in (mean, mean > 0))
    return np.where(mean > 0, mean, of_owner(total / np.maximum(committed, 1), owner, none=0.0))


def at_rest(series: SampleSeries) -> Int64:
    """Return the largest lag of each partition at rest, records, int64 of shape (P,).

    A partition is at rest in a step without arrivals and commits, if records arrived in at most one
    step since the last commit (for example a transaction's marker). Before the first commit, there
    must have been no arrivals. Only a lag of at most `FEW_RECORDS` counts.
    """
    steps = np.arange(len(series) - 1)[:, None]
    last = np.maximum.accumulate(np.where(series.advanced > 0, steps, -1), axis=0)
    arrivals = np.zeros((len(series), series.partitions), np.int64)  # steps with arrivals so far
    (series.arrived > 0).cumsum(axis=0, out=arrivals[1:])
    since = arrivals[1:] - np.take_along_axis(arrivals, last + 1, axis=0)
    quiet = (since <= (last >= 0)) & (series.arrived == 0) & (series.advanced == 0)
    quiet &= series.in_one_log[:-1]
    small = np.where(quiet & (series.lag[1:] <= FEW_RECORDS), series.lag[1:], 0)
    # A lag of one record in every sample is a transaction's marker, even without a step at rest.
    marker = np.minimum(series.lag.min(axis=0), 1) if len(series) > STEPS else 0
    largest: Int64 = np.maximum(small.max(axis=0, initial=0), marker).astype(np.int64)
    return largest
