"""How applications commit: intervals between commits, and the lag that is always there.

Belongs here: which steps between samples have commits, and how long partitions wait for one. Does
not: which lag is a backlog (`commits`), nor what makes no progress (`stalled`).
"""

from dataclasses import dataclass

import numpy as np

from fairlead.domain.analysis.per_member import PerMember, any_owned
from fairlead.domain.analysis.sample_series import Float64, Int64, Mask, SampleSeries
from fairlead.domain.analysis.stalled import never_committed, own_interval, waiting_seconds
from fairlead.domain.analysis.thresholds import FEW_RECORDS, NEGLIGIBLE, SEVERAL, STEPS


@dataclass(frozen=True, eq=False)
class Habits:
    """How M members commit P partitions in S steps.

    Parameters
    ----------
    rest
        Lag of each partition that is no backlog (`at_rest`), int64 of shape (P,).
    retained
        Whether a partition kept its owner in each step, bool of shape (S, P).
    committed, due
        Whether it was committed in such a step, and whether it had records to commit, bool of
        shape (S, P).
    marked
        Whether a member committed any partition in each step, bool of shape (S, M).
    waiting_s, owned_s
        Time for which a partition has had records to commit and no commit: under all owners, and
        under the present one; float64 of shape (P,).
    interval_s, rare
        As in `Commits`.
    committed_rarely
        Partitions that are committed less often than samples are taken, bool of shape (P,).
    unpunctual
        Members that are `rare`, or own such a partition, bool of shape (M,).
    """

    rest: Int64
    retained: Mask
    committed: Mask
    due: Mask
    marked: Mask
    waiting_s: Float64
    owned_s: Float64
    interval_s: Float64
    rare: Mask
    committed_rarely: Mask
    unpunctual: Mask

    def beyond_own_interval(self, series: SampleSeries, seconds: Float64) -> Mask:
        """Whether times without a commit exceed several usual intervals of the partition, (P,)."""
        return seconds >= SEVERAL * own_interval(series, self.committed, self.due, seconds)


def commit_habits(series: SampleSeries, per_member: PerMember) -> Habits:
    """Return how members commit their partitions."""
    rest, owner = at_rest(series), series.owner
    retained = (owner[1:] == owner[:-1]) & (owner[1:] >= 0) & series.in_one_log[:-1]
    committed = retained & series.committed_again
    uncommitted = (series.lag > rest) | never_committed(series)
    due = retained & (uncommitted[:-1] | committed)
    marked = per_member.any(committed)
    interval_s, rare = _intervals(series, marked, per_member.any(due))
    _, committed_rarely = _intervals(series, committed, due)
    return Habits(
        rest=rest,
        retained=retained,
        committed=committed,
        due=due,
        marked=marked,
        waiting_s=waiting_seconds(series, committed, uncommitted, same_owner=False),
        owned_s=waiting_seconds(series, committed, uncommitted),
        interval_s=interval_s,
        rare=rare,
        committed_rarely=committed_rarely,
        unpunctual=rare | any_owned(series, committed_rarely),
    )


def _intervals(series: SampleSeries, marked: Mask, due: Mask) -> tuple[Float64, Mask]:
    """Return the usual times between commits, and whether commits are rare.

    Parameters
    ----------
    marked, due
        Whether each of N members, or partitions, committed in a step, and had records to commit:
        bool of shape (S, N).

    Returns
    -------
    Seconds, float64 of shape (N,), and whether more than a tenth of the steps, and more than one,
    had records to commit and no commit: bool of shape (N,).
    """
    marks = marked.sum(axis=0)
    # Time since the last commit does not lengthen the usual interval, once there are several.
    until_last = np.logical_or.accumulate(marked[::-1], axis=0)[::-1] | (marks <= SEVERAL)
    due_s = (until_last * due * series.seconds[:, None]).sum(axis=0) if len(series) > 1 else 0.0
    steps_due = due.sum(axis=0)
    missed = steps_due - marks
    never = np.where(steps_due > 0, np.inf, 0.0)
    interval: Float64 = np.where(marks > 0, due_s / np.maximum(marks, 1), never)
    rare = (marks > 0) & (missed > np.maximum(NEGLIGIBLE * steps_due, 1))
    return np.maximum(interval, series.step), rare


def at_rest(series: SampleSeries) -> Int64:
    """Return the largest lag of each partition at rest, records, int64 of shape (P,).

    At rest: nothing happens in a step, and since the last commit something has arrived in one step
    at most, such as the marker of the transaction. Before the first commit: nothing has arrived.
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
