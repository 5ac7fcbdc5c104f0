"""Members that commit nothing, and partitions that make less progress than others.

Belongs here: the definitions of silent members (they commit nothing), and of partitions that are
stuck, throttled or foreign (their commit is beyond the end of the log). Belongs elsewhere: which
lag is a backlog (`commits`), and the diagnosis of a group (`diagnosis`).
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from fairlead.domain.analysis.commit_habits import STUCK_S, Habits, time_since
from fairlead.domain.analysis.per_member import any_owned, of_owner
from fairlead.domain.analysis.sample_series import Float64, Mask, Places, SampleSeries
from fairlead.domain.analysis.thresholds import (
    CLEARLY,
    DEVIATIONS,
    NEGLIGIBLE,
    SAMPLE_S,
    SEVERAL,
    STEPS,
)

#: A partition that falls behind is diagnosed as throttled if its owner keeps up with enough busier
#: partitions: an owner that only lacked time would fall behind in all. `_OTHERS`: minimum number of
#: these. `_FASTER`: minimum ratio of arrivals in each to records read from the throttled one.
_FASTER: Final = 1.5
_OTHERS: Final = 2
#: If a partition changed owners at least this often while it waited, it is compared with all
#: partitions of the group.
_HANDED_ON: Final = 2
#: Used in place of the owner if a partition is compared with the partitions of all owners.
_ANY_OWNER: Final = -1


@dataclass(frozen=True, eq=False)
class Stalls(Habits):
    """Members and partitions with little or no progress. Masks are of shape (P,) unless stated."""

    #: Members that have committed nothing for far longer than usual, although they had records to
    #: commit; and owners of `foreign` partitions. bool of shape (M,).
    silent: Mask
    #: Partitions with commits beyond the end of their log, for example because commits were copied
    #: from another cluster: the owner's position is unknown.
    foreign: Mask
    #: Partitions whose commit stays the same while other partitions are read to their end.
    stuck: Mask
    #: Partitions with a commit or arrivals. If a partition has neither, the offset at which
    #: consumers start is unknown.
    started: Mask
    #: Partitions that fall behind although their owner keeps up with other partitions or has time
    #: to wait for records.
    throttled: Mask
    #: How many records a second were recently read from each partition, float64.
    read_per_s: Float64


def stalls(habits: Habits, waits: Mask | None) -> Stalls:
    """Return members and partitions with little or no progress; `waits` as in `read_commits`."""
    series = habits.series
    silent, foreign = silent_members(habits), foreign_partitions(series)
    started = (series.last_committed[-1] >= 0) | (series.arrived > 0).any(axis=0)
    # Many applications commit only after a certain number of records. So a partition is not stuck
    # as long as its lag is within the usual number of records per commit.
    gathers = series.lag[-1] <= np.maximum(habits.rest, CLEARLY * habits.per_commit)
    stuck = stuck_partitions(habits, silent) & started & ~gathers
    throttled, read_per_s = throttled_partitions(habits, waits)
    return Stalls(
        **vars(habits),
        silent=silent | any_owned(series, foreign),
        foreign=foreign,
        stuck=stuck,
        started=started,
        throttled=throttled & ~stuck,
        read_per_s=read_per_s,
    )


def foreign_partitions(series: SampleSeries) -> Mask:
    """Return the partitions with commits beyond the end of their log, bool of shape (P,).

    Commits are read a moment after end offsets. So the commit must be beyond the end by more
    records than arrive meanwhile, in each of the newest samples. Empty logs are left out.
    """
    meanwhile = SAMPLE_S * (series.arrived / series.seconds[:, None]).max(axis=0, initial=0.0)
    filled = series.end > np.maximum(series.begin, 0)
    beyond = filled & (series.committed - series.end > meanwhile)
    foreign: Mask = beyond[-STEPS:].all(axis=0) & (len(series) > STEPS)
    return foreign


def silent_members(habits: Habits) -> Mask:
    """Return whether each member committed nothing for too long despite new records, (M,)."""
    series, owner = habits.series, habits.series.owner[-1]
    longest_s = np.zeros(len(series.members))
    np.maximum.at(longest_s, owner[owner >= 0], habits.waiting_s[owner >= 0])
    quiet_s = time_since(series, ~habits.marked, np.ones(longest_s.size, dtype=bool))
    silent: Mask = np.minimum(longest_s, quiet_s) >= habits.silence_s
    return silent & (len(series) > STEPS)


def stuck_partitions(habits: Habits, silent: Mask) -> Mask:
    """Return whether each partition waits while others are read to their end several times, (P,).

    A partition is compared with the other partitions of its owner. If it has changed owners several
    times while it waited, it is compared with all partitions of the group: a record that cannot be
    processed stops one consumer after another. Only partitions that are read to their end are
    evidence, because a client that reads one backlog after another also lets partitions wait. If no
    partition is read to its end, two or more partitions committed in one step are evidence.
    """
    series, owner = habits.series, habits.series.owner
    changes = np.cumsum((owner[1:] != owner[:-1]) & (owner[1:] >= 0), axis=0)
    changes = np.vstack((np.zeros_like(owner[:1]), changes))
    began = changes[_since(series, habits.waiting_s), np.arange(series.partitions)]
    handed_on = changes[-1] - began >= _HANDED_ON
    waited_s = np.where(handed_on, habits.waiting_s, habits.owned_s)
    waits = (owner[-1] >= 0) & (waited_s >= habits.patience_s) & (len(series) > STEPS)
    waits &= handed_on | ~of_owner(silent, owner[-1], none=False)
    reader = np.where(handed_on, _ANY_OWNER, owner[-1])
    caught_up = series.committed_again & (series.position[1:] >= series.readable_end[:-1])
    stuck = np.zeros(series.partitions, dtype=bool)
    for theirs, seconds in {*zip(reader[waits].tolist(), waited_s[waits].tolist(), strict=True)}:
        every = theirs == _ANY_OWNER
        columns = np.flatnonzero(owner[-1] >= 0 if every else owner[-1] == theirs)
        waiting_s = (habits.waiting_s if every else habits.owned_s)[columns]
        first = int(_since(series, seconds))
        beside = every | (owner[first + 1 :, columns] == theirs)
        commits = (caught_up[first:, columns] & beside).sum(axis=0)
        if not commits.any():
            together = series.committed_again[first:, columns] & beside
            commits = (together & (together.sum(axis=1, keepdims=True) > 1)).sum(axis=0)
        counted = commits[(waiting_s < seconds) & ((commits > 0) | (waiting_s > 0))]
        if counted.size and np.median(counted) >= SEVERAL:
            stuck |= waits & (reader == theirs) & (waited_s == seconds)
    return stuck


def _since(series: SampleSeries, seconds: Float64 | float) -> Places:
    """Return the index of the oldest sample at most `seconds` old, or else of the last sample."""
    return np.minimum(np.searchsorted(series.at, series.now - seconds - 1e-6), len(series) - 1)


def newest_steps(series: SampleSeries) -> int:
    """Return how many newest steps show whether a partition is throttled."""
    return max(len(series) - 1 - int(_since(series, STUCK_S - 2e-6)), STEPS)


def throttled_partitions(habits: Habits, waits: Mask | None) -> tuple[Mask, Float64]:
    """Return partitions that fall behind although their owner has time for them.

    Clients divide their time evenly among partitions. So if the owner reads busier partitions to
    their end, or waits for records, the owner is not the cause: a quota or the network limits the
    partition. The rule uses the last `newest_steps` steps in which the partition's owner committed,
    and the steps without a commit before each of them.

    Returns
    -------
    The partitions, bool of shape (P,), and each partition's records read a second, float64 (P,).
    """
    series, owner, count = habits.series, habits.series.owner[1:], newest_steps(habits.series)
    committing = np.take_along_axis(habits.marked, np.maximum(owner, 0), axis=1)
    following = (habits.retained & committing)[::-1].cumsum(axis=0)[::-1]
    counts = habits.retained & (following >= 1) & (following <= count)
    shows = counts & committing
    # A partition is behind if each commit left records that had arrived before the step.
    behind = shows & (series.readable_end[:-1] - series.position[1:] > habits.rest)
    seconds = np.maximum(series.seconds @ counts, 1e-9)
    read, arrived = ((each * counts).sum(axis=0) for each in (series.advanced, series.arrived))
    enough = (shows.sum(axis=0) == count) & (series.owner[-1] >= 0) & (arrived > 0)
    falls = enough & (behind.sum(axis=0) == count) & (read > 0) & (read < arrived)
    rests = enough & (behind.sum(axis=0) <= NEGLIGIBLE * count)
    throttled = np.zeros_like(falls)
    if waits is not None:
        # A consumer that delays records on purpose waits, too. So the partition must fall behind by
        # more than chance. Only the present owner counts: an earlier owner may have been too slow.
        surely = arrived - read > DEVIATIONS * np.sqrt(arrived + read)
        surely &= (~counts | (owner == series.owner[-1])).all(axis=0)
        throttled = falls & surely & of_owner(waits, series.owner[-1], none=False)
    for partition in np.flatnonzero(falls).tolist():
        faster = arrived / seconds >= _FASTER * read[partition] / seconds[partition]
        beside = owner[counts[:, partition]] == owner[counts[:, partition], partition, None]
        throttled[partition] |= np.median((beside & rests & faster).sum(axis=1)) >= _OTHERS
    return throttled, read / seconds
