"""How applications commit: intervals between commits, and the lag that is always there.

Belongs here: which steps between samples have commits, and how long partitions wait for one. Does
not: which lag is a backlog (`commits`), nor what makes no progress (`stalled`).
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from fairlead.domain.analysis.per_member import PerMember, any_owned
from fairlead.domain.analysis.sample_series import Float64, Int64, Mask, SampleSeries
from fairlead.domain.analysis.thresholds import CLEARLY, FEW_RECORDS, NEGLIGIBLE, SEVERAL, STEPS

#: Seconds. Minimum time without a commit for a silent member, or a stuck partition.
STUCK_S: Final = 120.0


@dataclass(frozen=True, eq=False)
class Habits:
    """How M members commit P partitions in S steps between samples."""

    series: SampleSeries
    per_member: PerMember
    #: Lag of each partition that is no backlog (`at_rest`), int64 of shape (P,).
    rest: Int64
    #: Whether a partition kept its owner in each step; whether it was committed in such a step; and
    #: whether it had records to commit; bool of shape (S, P).
    retained: Mask
    committed: Mask
    due: Mask
    #: Whether a member committed any partition in each step, bool of shape (S, M).
    marked: Mask
    #: Seconds for which a partition has had records to commit and no commit, under all owners, and
    #: under the present one; float64 of shape (P,).
    waiting_s: Float64
    owned_s: Float64
    #: Second longest such time of each partition that ended with a commit, in seconds; 0: fewer
    #: than two. float64 of shape (P,).
    waited_twice_s: Float64
    #: Usual time between commits of a member, and members that commit less often than samples are
    #: taken, shape (M,): see `Commits`.
    interval_s: Float64
    rare: Mask
    #: Partitions that are committed less often than samples are taken, bool of shape (P,).
    committed_rarely: Mask
    #: Members that are `rare`, or own such a partition, bool of shape (M,).
    unpunctual: Mask

    @property
    def patience_s(self) -> Float64:
        """Seconds without a commit after which a member is silent, float64 of shape (M,)."""
        step = self.series.step
        usual = np.where(np.isfinite(self.interval_s), self.interval_s, step)
        seconds: Float64 = np.maximum(np.maximum(SEVERAL * usual, STEPS * step), STUCK_S)
        return seconds

    def beyond_own_interval(self, waiting_s: Float64) -> Mask:
        """Whether times without a commit are unusual for the partition, bool of shape (P,).

        An unusual time exceeds several of the partition's usual intervals, which are longer if
        fewer records arrive, and clearly exceeds its second longest wait so far: consumers that
        read one partition after another let each wait. True for a partition without any commit.
        """
        marks = self.committed.sum(axis=0)
        due_s = self.series.seconds @ self.due - waiting_s
        interval_s = np.where(marks > 0, np.maximum(due_s, 0.0) / np.maximum(marks, 1), 0.0)
        usual_s = np.maximum(SEVERAL * interval_s, CLEARLY * self.waited_twice_s)
        beyond: Mask = waiting_s >= usual_s
        return beyond


def commit_habits(series: SampleSeries) -> Habits:
    """Return how members commit their partitions."""
    rest, owner, per_member = at_rest(series), series.owner, PerMember(series)
    same = owner[1:] == owner[:-1]
    retained = same & (owner[1:] >= 0) & series.in_one_log[:-1]
    committed = retained & series.committed_again
    uncommitted = (series.lag > rest) | _never_committed(series)
    due = retained & (uncommitted[:-1] | committed)
    marked = per_member.any(committed)
    interval_s, rare = _intervals(series, marked, per_member.any(due))
    _, committed_rarely = _intervals(series, committed, due)
    still = uncommitted[:-1] & ~committed & series.in_one_log[:-1]
    unread = still & ~series.committed_again  # nor while it changed hands
    return Habits(
        series=series,
        per_member=per_member,
        rest=rest,
        retained=retained,
        committed=committed,
        due=due,
        marked=marked,
        waiting_s=_since(series, unread, uncommitted[-1]),
        owned_s=_since(series, still & same, uncommitted[-1]),
        waited_twice_s=_waited_twice(series, unread),
        interval_s=interval_s,
        rare=rare,
        committed_rarely=committed_rarely,
        unpunctual=rare | any_owned(series, committed_rarely),
    )


def _since(series: SampleSeries, still: Mask, now: Mask) -> Float64:
    """Return for how long `still`, (S, P), then `now`, (P,), have been true; seconds, (P,)."""
    holds = np.logical_and.accumulate(np.vstack((still, now))[::-1], axis=0)
    first = len(series) - holds.sum(axis=0)
    since: Float64 = series.at[np.minimum(first, len(series) - 1)]
    return series.now - since


def _waited_twice(series: SampleSeries, still: Mask) -> Float64:
    """Return the second longest time without a commit that ended with one, in seconds, (P,)."""
    began = np.where(still, 0, np.arange(1, len(series))[:, None])
    began = np.maximum.accumulate(began, axis=0)[:-1]
    ended = still[:-1] & series.committed_again[1:]
    waited = np.where(ended, series.at[1:-1, None] - series.at[began], 0.0)
    second: Float64 = np.sort(np.vstack((np.zeros((2, series.partitions)), waited)), axis=0)[-2]
    return second


def _never_committed(series: SampleSeries) -> Mask:
    """Return whether records arrived in partitions without a commit, bool of shape (L, P).

    Only if consumers without a commit start at the end of the log: such a partition has no lag, but
    its arrivals can be committed.
    """
    grown = np.zeros(series.end.shape, dtype=bool)
    grown[1:] = series.latest & series.in_one_log[1:] & (series.arrived > 0)
    return (series.committed < 0) & np.logical_or.accumulate(grown, axis=0)


def _intervals(series: SampleSeries, marked: Mask, due: Mask) -> tuple[Float64, Mask]:
    """Return the usual times between commits of N members or partitions, and whether they are rare.

    Rare: more than a tenth of the steps, and more than one, had records to commit and no commit.

    Parameters
    ----------
    marked, due
        Whether each committed in a step, and had records to commit: bool of shape (S, N).
    """
    marks, steps_due = marked.sum(axis=0), due.sum(axis=0)
    # Time since the last commit does not lengthen the usual interval, once there are several.
    until_last = np.logical_or.accumulate(marked[::-1], axis=0)[::-1] | (marks <= SEVERAL)
    never = np.where(steps_due > 0, np.inf, 0.0)
    due_s = series.seconds @ (until_last & due)
    interval: Float64 = np.where(marks > 0, due_s / np.maximum(marks, 1), never)
    rare = (marks > 0) & (steps_due - marks > np.maximum(NEGLIGIBLE * steps_due, 1))
    return np.maximum(interval, series.step), rare


def at_rest(series: SampleSeries) -> Int64:
    """Return the largest lag of each partition at rest, records, int64 of shape (P,).

    At rest: nothing happens in a step, and since the last commit there were arrivals in one step at
    most, for example a transaction's marker. Before the first commit: there were no arrivals.
    """
    steps = np.arange(len(series) - 1)[:, None]
    last = np.maximum.accumulate(np.where(series.advanced > 0, steps, -1), axis=0)
    arrivals = np.zeros((len(series), series.partitions), np.int64)  # steps with arrivals so far
    (series.arrived > 0).cumsum(axis=0, out=arrivals[1:])
    since = arrivals[1:] - np.take_along_axis(arrivals, last + 1, axis=0)
    quiet = (since <= (last >= 0)) & (series.arrived == 0) & (series.advanced == 0)
    quiet &= series.in_one_log[:-1]
    small = np.where(quiet & (series.lag[1:] <= FEW_RECORDS), series.lag[1:], 0)
    # Without a quiet step: a lag of one record in every sample is a transaction's marker.
    marker = np.minimum(series.lag.min(axis=0), 1) if len(series) > STEPS else 0
    largest: Int64 = np.maximum(small.max(axis=0, initial=0), marker).astype(np.int64)
    return largest
