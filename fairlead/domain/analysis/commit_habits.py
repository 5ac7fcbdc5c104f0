"""How applications commit: intervals between commits, and the lag that remains at rest.

Belongs here: the steps between samples in which offsets were committed, and how long partitions
wait for a commit. Belongs elsewhere: which lag is a backlog (`commits`), and which members and
partitions make no progress (`stalled`).
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from fairlead.domain.analysis.per_member import PerMember, of_owner, sum_by_owner
from fairlead.domain.analysis.sample_series import Float64, Int64, Mask, SampleSeries
from fairlead.domain.analysis.thresholds import CLEARLY, FEW_RECORDS, NEGLIGIBLE, SEVERAL, STEPS

#: Seconds. Minimum time without a commit after which a member counts as silent, or a partition as
#: stuck.
STUCK_S: Final = 120.0


@dataclass(frozen=True, eq=False)
class Habits:
    """How M members commit P partitions in S steps between samples."""

    series: SampleSeries
    per_member: PerMember
    #: Lag of each partition at rest (see `at_rest`), int64 of shape (P,). This much lag is no
    #: backlog.
    rest: Int64
    #: `retained`: whether each partition kept its owner in each step. `committed`: whether it also
    #: had a commit in the step. bool of shape (S, P).
    retained: Mask
    committed: Mask
    #: Whether each member committed at least one partition in each step, bool of shape (S, M).
    marked: Mask
    #: Mean records per commit of each partition, float64 of shape (P,). A partition without a
    #: commit gets the mean of its owner's other partitions.
    per_commit: Float64
    #: `waiting_s`: seconds for which each partition has now been waiting for a commit of new
    #: records. `owned_s`: the part of this time under the present owner. float64 of shape (P,).
    waiting_s: Float64
    owned_s: Float64
    #: Usual seconds between commits of each member, at least the length of a step, float64 of shape
    #: (M,). Infinite if the member had records to commit, but never committed.
    interval_s: Float64
    #: Seconds after which the lack of a commit is unusual. `silence_s`, for each member, (M,):
    #: several times its usual interval. `patience_s`, for each partition, (P,): the `silence_s` of
    #: its owner, but at least `CLEARLY` times the partition's second longest wait.
    silence_s: Float64
    patience_s: Float64
    #: Whether commits of each member (`rare`, bool of shape (M,)) and of each partition
    #: (`committed_rarely`, bool of shape (P,)) are rare, as defined in `_intervals`.
    rare: Mask
    committed_rarely: Mask


def commit_habits(series: SampleSeries) -> Habits:
    """Return how the members of a group commit their partitions."""
    rest, owner, per_member = at_rest(series), series.owner, PerMember(series)
    same = (owner[1:] == owner[:-1]) & (owner[1:] >= 0)
    retained, uncommitted = same & series.in_one_log[:-1], series.lag > rest
    if series.latest:
        # Consumers that start at the end of a log have lag 0 before their first commit. So arrivals
        # show whether they have records to commit.
        arrived = np.vstack((np.zeros_like(rest), series.arrived)).cumsum(axis=0)
        uncommitted |= (series.committed < 0) & (arrived > 0)
    committed = same & series.committed_again
    due = retained & (uncommitted[:-1] | committed)
    marked = per_member.any(committed)
    interval_s, rare = _intervals(series, marked, per_member.any(due))
    unread = uncommitted[:-1] & ~series.committed_again & series.in_one_log[:-1]
    usual_s = np.where(np.isfinite(interval_s), interval_s, series.step)
    silence_s = np.maximum(SEVERAL * usual_s, max(STEPS * series.step, STUCK_S))
    # A consumer may read one partition after another, while its other partitions wait.
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
    """Return how long each of N conditions has been true without interruption, seconds, (N,).

    `still`: whether each condition was true in each step, (S, N); `now`: whether it is true in the
    last sample, (N,).
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
    """Return the usual seconds between commits, and whether commits are rare, both of shape (N,).

    Commits are rare if there are commits, but more than one of the steps with records to commit,
    and more than a tenth of these steps, have no commit.

    Parameters
    ----------
    marked, due
        Whether each of N members or partitions had a commit in each step, and whether it had
        records to commit in the step; bool of shape (S, N).
    """
    marks, steps_due = marked.sum(axis=0), due.sum(axis=0)
    # If there are several commits, ignore the time since the last one: it may only mean that the
    # application has stopped.
    until_last = np.logical_or.accumulate(marked[::-1], axis=0)[::-1] | (marks < SEVERAL)
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
    """Return the largest lag that each partition had at rest, in records, int64 of shape (P,).

    A partition is at rest in a step without arrivals and commits if records arrived in at most one
    step since the last commit (such an arrival may be a transaction's marker). Before the first
    commit, it is at rest only until the first arrival. A lag above `FEW_RECORDS` is ignored.
    """
    steps = np.arange(len(series) - 1)[:, None]
    last = np.maximum.accumulate(np.where(series.advanced > 0, steps, -1), axis=0)
    arrivals = np.zeros((len(series), series.partitions), np.int64)  # steps with arrivals so far
    (series.arrived > 0).cumsum(axis=0, out=arrivals[1:])
    since = arrivals[1:] - np.take_along_axis(arrivals, last + 1, axis=0)
    quiet = (since <= (last >= 0)) & (series.arrived == 0) & (series.advanced == 0)
    quiet &= series.in_one_log[:-1]
    small = np.where(quiet & (series.lag[1:] <= FEW_RECORDS), series.lag[1:], 0)
    # If a partition has lag in every sample, one of the records is regarded as a transaction's
    # marker, even if the partition was never at rest.
    marker = np.minimum(series.lag.min(axis=0), 1) if len(series) > STEPS else 0
    largest: Int64 = np.maximum(small.max(axis=0, initial=0), marker).astype(np.int64)
    return largest
