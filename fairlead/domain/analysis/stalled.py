"""Partitions and members that make no progress, or less than others of the same owner.

Belongs here: the definitions of silent members, and of foreign, stuck and throttled partitions.
Does not: which lag is a backlog (`commits`), nor conclusions from these (`diagnosis`).
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from fairlead.domain.analysis.commit_habits import STUCK_S, Habits
from fairlead.domain.analysis.per_member import any_owned, of_owner
from fairlead.domain.analysis.sample_series import Float64, Int64, Mask, SampleSeries
from fairlead.domain.analysis.thresholds import (
    CLEARLY,
    DEVIATIONS,
    MOSTLY,
    SAMPLE_S,
    SEVERAL,
    STEPS,
)

#: Minimum ratio of the arrivals of another partition of the owner to the records read of the
#: throttled one, and minimum number of such others: clients share their time more evenly.
_FASTER: Final = 1.5
_OTHERS: Final = 2
#: Minimum number of changes of owner for a partition that is stuck under several owners.
_HANDED_ON: Final = 2


@dataclass(frozen=True, eq=False)
class Stalls:
    """Members and partitions without progress; bool of shape (P,) unless stated otherwise."""

    #: Members that have committed nothing for far longer than usual although they had records to
    #: commit, or whose commits are foreign; bool of shape (M,).
    silent: Mask
    #: Partitions with commits beyond the end of their log, for example because commits were copied
    #: from another cluster: the owner's position is unknown.
    foreign: Mask
    #: Partitions that wait while their owner commits others.
    stuck: Mask
    #: Partitions with a commit or an arrival: for others, it is unknown where consumers start.
    started: Mask
    #: Partitions that fall behind while their owner keeps up with others, or waits for records.
    #: Clients share their time evenly, so the cause is not the owner's speed.
    throttled: Mask
    #: Recent read rate of each partition, records a second, float64.
    read_per_s: Float64
    #: Partitions whose commit is overdue, by their own interval and their owner's, although more
    #: records wait than usually gather before a commit.
    overdue: Mask


def stalls(habits: Habits, per_commit: Float64, waits: Mask | None) -> Stalls:
    """Return members and partitions without progress; parameters as in `read_commits`."""
    series, waiting_s = habits.series, habits.waiting_s
    owner = series.owner[-1]
    foreign = foreign_partitions(series)
    # Time under earlier owners counts only if the commit is overdue by the partition's interval.
    overdue = habits.beyond_own_interval(waiting_s)
    silent = silent_members(habits, np.where(overdue, waiting_s, habits.owned_s))
    overdue &= waiting_s >= of_owner(habits.patience_s, owner, none=STUCK_S)
    stuck = stuck_partitions(habits) & habits.beyond_own_interval(habits.owned_s)
    left, read_per_s = left_behind(habits)
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
    return Stalls(
        silent=silent | any_owned(series, foreign),
        foreign=foreign,
        stuck=stuck,
        started=started,
        throttled=throttled,
        read_per_s=read_per_s,
        overdue=overdue & ~gathers,
    )


def foreign_partitions(series: SampleSeries) -> Mask:
    """Return the partitions with commits beyond the end of their log, bool of shape (P,).

    At each of the newest samples, and by more than the arrivals while a sample is taken: end
    offsets are read before commits.
    """
    if len(series) <= STEPS:
        return np.zeros(series.partitions, dtype=bool)
    newest = slice(-STEPS, None)
    # Nothing is unread in an empty log.
    filled = series.end[newest] > np.maximum(series.begin[newest], 0)
    beyond = np.where(filled, (series.committed - series.end)[newest], 0)
    meanwhile = SAMPLE_S * (series.arrived / series.seconds[:, None]).max(axis=0)
    foreign: Mask = (beyond > meanwhile).all(axis=0)
    return foreign


def silent_members(habits: Habits, waiting_s: Float64) -> Mask:
    """Return whether members had records to commit for long and did not commit, (M,)."""
    series, count = habits.series, len(habits.series.members)
    if len(series) <= STEPS:
        return np.zeros(count, dtype=bool)
    owner = series.owner
    waits = (waiting_s > 0) & (owner[-1] >= 0)
    longest = np.full(count, -1.0)
    np.maximum.at(longest, owner[-1][waits], waiting_s[waits])
    moved = habits.per_member.any(series.committed_again & (owner[1:] == owner[:-1]))
    last = len(moved) - np.argmax(moved[::-1], axis=0)
    last_at = np.where(moved.any(axis=0), series.at[np.minimum(last, len(series) - 1)], -np.inf)
    silent: Mask = np.minimum(longest, series.now - last_at) >= habits.patience_s
    return silent


def stuck_partitions(habits: Habits) -> Mask:
    """Return whether partitions wait while their owner commits others several times, (P,)."""
    series, waiting_s = habits.series, habits.owned_s
    stuck = np.zeros(series.partitions, dtype=bool)
    if len(series) <= STEPS:
        return stuck
    owner, since = series.owner[-1], _sample_before(series, waiting_s)
    # Commits of each member since the partition began to wait.
    commits = _total(habits.marked)
    others = commits[-1, owner] - commits[since, owner]
    waits = (owner >= 0) & (waiting_s >= habits.patience_s[owner]) & (others >= SEVERAL)
    if not waits.any():
        return stuck
    # Turns under earlier owners do not count.
    turns = _total(_turns(series, habits.committed & (series.owner[1:] == owner)))
    for partition in np.flatnonzero(waits).tolist():
        beside = (owner == owner[partition]) & (waiting_s < waiting_s[partition])
        taken = (turns[-1] - turns[since[partition]])[beside]
        usual = np.median(taken[taken > 0]) if taken.any() else 0.0
        stuck[partition] = usual >= SEVERAL
    return stuck


def stuck_under_owners(series: SampleSeries, waiting_s: Float64) -> Mask:
    """Return whether partitions wait under several owners while most others are committed, (P,).

    A record that cannot be processed stops its consumer. The next owner fares likewise, and may
    commit nothing else meanwhile.
    """
    stuck = np.zeros(series.partitions, dtype=bool)
    owner, since = series.owner, _sample_before(series, waiting_s)
    changes = _total((owner[1:] != owner[:-1]) & (owner[1:] >= 0))
    commits = _total(series.committed_again)
    handed_on = changes[-1] - changes[since, np.arange(series.partitions)] >= _HANDED_ON
    waits = (owner[-1] >= 0) & (waiting_s >= STUCK_S)
    others = (owner[-1] >= 0) & (waiting_s < STUCK_S)
    for partition in np.flatnonzero(handed_on & waits).tolist():
        taken = (commits[-1] - commits[since[partition]])[others]
        stuck[partition] = taken.size > 0 and np.median(taken) >= SEVERAL
    return stuck


def _sample_before(series: SampleSeries, seconds: Float64) -> Int64:
    """Return the index of the oldest sample that is at most `seconds` old, of shape (P,)."""
    since = np.searchsorted(series.at, series.now - seconds - 1e-6)
    return np.minimum(since, len(series) - 1)


def _total(steps: Mask) -> Int64:
    """Return how many `steps`, shape (S, N), are true before each sample, shape (L, N)."""
    return np.vstack((np.zeros((1, steps.shape[1]), np.int64), steps.cumsum(axis=0)))


def _turns(series: SampleSeries, moved: Mask) -> Mask:
    """Return the steps in which a new turn of each partition began, bool of shape (S, P).

    Kafka's clients process one fetched batch after the other, for minutes each, while the other
    partitions wait. A turn begins if the owner has committed another partition since the last
    commit of this one, or has read this one to the end.
    """
    steps = np.arange(moved.shape[0])[:, None]
    last = np.maximum.accumulate(np.where(moved, steps, -1), axis=0)
    before = np.concatenate((np.full((1, moved.shape[1]), -1), last[:-1]))
    owner = series.owner[-1]
    cell = np.where(moved & (owner >= 0), owner + len(series.members) * steps, -1)
    size = len(series.members) * len(moved)
    every = np.bincount(cell[cell >= 0], minlength=size).reshape(len(moved), -1)
    others = of_owner(every, owner, none=0) - moved
    between = (others > 0).cumsum(axis=0)
    columns = np.arange(moved.shape[1])
    since = np.where(before >= 0, between[np.maximum(before, 0), columns], 0)
    done = series.position[1:] >= series.readable_end[:-1]
    return moved & (done | (between > since) | (before < 0))


def newest_steps(series: SampleSeries) -> int:
    """Return the number of newest steps that show a throttled partition."""
    first = int(np.searchsorted(series.at, series.now - STUCK_S + 1e-6))
    return max(len(series) - 1 - first, STEPS)


def fetched_slowly(series: SampleSeries, rest: Int64, waits: Mask) -> Mask:
    """Return partitions with a backlog while their owner waits for records, bool of shape (P,).

    A quota or the network limits the fetches, not the consumer, if the first unread record gets
    older. If the backlog neither grows nor shrinks, the consumer may process records only when they
    are old enough.
    """
    count, owner = newest_steps(series), series.owner
    owner_waits = of_owner(waits, owner[-1], none=False)
    if len(series) <= count or not owner_waits.any():
        return np.zeros(series.partitions, dtype=bool)
    # Each commit left records that had arrived before the step.
    left = series.readable_end[:-1] - series.position[1:] > rest
    left &= (owner[1:] == owner[:-1]) & series.in_one_log[:-1] & series.committed_again
    since = np.logical_and.accumulate(left[::-1], axis=0)[::-1]
    read, arrived = ((since * records).sum(axis=0) for records in (series.advanced, series.arrived))
    changes = np.abs(arrived - read) > DEVIATIONS * np.sqrt(arrived + read)
    slowly = np.asarray(owner_waits & (since.sum(axis=0) >= count) & changes)
    for partition in np.flatnonzero(slowly).tolist():
        slowly[partition] = _gets_older(series, partition, int(since[:, partition].sum()))
    return slowly


def _gets_older(series: SampleSeries, partition: int, steps: int) -> bool:
    """Return whether the age of a partition's first unread record grew in the newest steps."""
    per_s = series.arrived.sum(axis=0) / (series.now - series.at[0])
    last = len(series) - 1
    before, now = (
        each.time_lag((each.end - each.position)[-1].astype(np.float64), per_s)[partition]
        for each in (series.until(max(last - steps, 1)), series)
    )
    return bool(now - before > series.step / 2)


def left_behind(habits: Habits) -> tuple[Mask, Float64]:
    """Return partitions that fall behind while their owner keeps up with others.

    Uses the newest steps in which a partition kept its owner, and the owner committed something. If
    commits are rare, uses fewer steps, from all samples.

    Returns
    -------
    bool of shape (P,), and the records of each that are read a second, float64 of shape (P,).
    """
    series, rare = habits.series, habits.rare
    nothing = np.zeros(series.partitions)
    count = newest_steps(series)
    if len(series) <= count:
        return nothing > 0, nothing
    newest = max(len(series) - 1 - SEVERAL * count, 0)
    steps = slice(0 if rare.any() else newest, None)
    retained, owner = habits.retained[steps], series.owner[1:][steps]
    if rare.any():
        recent = np.arange(len(owner)) >= newest
        retained = retained & (recent[:, None] | of_owner(rare, owner, none=False))
    shows = retained & np.take_along_axis(habits.marked[steps], np.maximum(owner, 0), axis=1)
    following = shows[::-1].cumsum(axis=0)[::-1]
    wanted = np.where(of_owner(rare, series.owner[-1], none=False), SEVERAL, count)
    counts = retained & (following >= 1) & (following <= wanted)
    shows &= counts
    # The commit left records that had arrived before the step.
    behind = series.position[1:][steps] < series.readable_end[:-1][steps]
    span = np.maximum(series.seconds[steps] @ counts, 1e-9)
    read_per_s = (series.advanced[steps] * counts).sum(axis=0) / span
    arrived_per_s = (series.arrived[steps] * counts).sum(axis=0) / span
    enough = (shows.sum(axis=0) == wanted) & (series.owner[-1] >= 0)
    left = enough & (behind | ~shows).all(axis=0) & (read_per_s < arrived_per_s)
    # The owner must have read another partition to its end at least once.
    rests_at, resting = np.nonzero(retained & ~behind)
    idle = np.zeros((len(owner), len(series.members) + 1), dtype=bool)
    idle[rests_at, owner[rests_at, resting]] = True
    left &= (shows & idle[np.arange(len(owner))[:, None], owner]).any(axis=0)
    for partition in np.flatnonzero(left).tolist():
        showing = shows[:, partition]
        beside = retained[showing] & (owner[showing] == owner[showing, partition, None])
        rests = (beside & ~behind[showing]).sum(axis=0) >= MOSTLY * beside.sum(axis=0)
        faster = (arrived_per_s > 0) & (arrived_per_s >= _FASTER * read_per_s[partition])
        others = (beside & rests & faster).sum(axis=1) >= _OTHERS
        left[partition] = others.mean() >= MOSTLY
    return left, read_per_s
