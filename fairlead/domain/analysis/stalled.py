"""Partitions and members that make no progress, or less than others of the same owner.

Belongs here: the definitions of silent members, and of foreign, stuck and throttled partitions.
Does not: which lag is a backlog (`commits`), nor conclusions from these (`diagnosis`).
"""

from typing import Final

import numpy as np

from fairlead.domain.analysis.per_member import PerMember, of_owner
from fairlead.domain.analysis.sample_series import Float64, Int64, Mask, SampleSeries
from fairlead.domain.analysis.thresholds import (
    DEVIATIONS,
    MOSTLY,
    SAMPLE_S,
    SEVERAL,
    STEPS,
)

#: Seconds. Minimum time without a commit for a silent member, or a stuck partition.
STUCK_S: Final = 120.0
#: Minimum ratio of the arrivals of another partition of the owner to the records read of the
#: throttled one, and minimum number of such others: clients share their time more evenly.
_FASTER: Final = 1.5
_OTHERS: Final = 2
#: Minimum number of changes of owner for a partition that is stuck under several owners.
_HANDED_ON: Final = 2


def waiting_seconds(
    series: SampleSeries, moved: Mask, uncommitted: Mask, *, same_owner: bool = True
) -> Float64:
    """Return the time for which each partition has had records to commit and no commit, (P,).

    Parameters
    ----------
    moved
        Whether the owner committed in each step, bool of shape (S, P).
    uncommitted
        Whether there were records to commit at each sample, bool of shape (L, P).
    same_owner
        Whether time under earlier owners is left out.
    """
    # From the last sample backwards: samples with uncommitted records, steps without a commit.
    still = uncommitted.copy()
    waited = (series.owner[1:] == series.owner[:-1]) if same_owner else ~series.committed_again
    still[:-1] &= ~moved & waited & series.in_one_log[:-1]
    waits = np.logical_and.accumulate(still[::-1], axis=0)[::-1]
    first = len(series) - waits.sum(axis=0)
    since: Float64 = series.at[np.minimum(first, len(series) - 1)]
    return series.now - since


def never_committed(series: SampleSeries) -> Mask:
    """Return whether records arrived in partitions without a commit, bool of shape (L, P).

    Only if consumers without a commit start at the end of the log: such a partition has no lag, but
    its arrivals can be committed.
    """
    if not series.latest:
        return np.zeros(series.end.shape, dtype=bool)
    grown = series.in_one_log & (np.concatenate((series.arrived[:1] * 0, series.arrived)) > 0)
    return (series.committed < 0) & np.logical_or.accumulate(grown, axis=0)


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
    if not (beyond > 0).any():
        return np.zeros(series.partitions, dtype=bool)
    meanwhile = SAMPLE_S * (series.arrived / series.seconds[:, None]).max(axis=0)
    foreign: Mask = (beyond > meanwhile).all(axis=0)
    return foreign


def patience(series: SampleSeries, interval_s: Float64) -> Float64:
    """Return the seconds without a commit after which a member is silent, float64 of shape (M,)."""
    usual = np.where(np.isfinite(interval_s), interval_s, series.step)
    seconds: Float64 = np.maximum(np.maximum(SEVERAL * usual, STEPS * series.step), STUCK_S)
    return seconds


def silent_members(
    series: SampleSeries, per_member: PerMember, waiting_s: Float64, interval_s: Float64
) -> Mask:
    """Return whether members had records to commit for long and did not commit, (M,)."""
    if len(series) <= STEPS:
        return np.zeros(per_member.members, dtype=bool)
    waits = (waiting_s > 0) & (series.owner[-1] >= 0)
    longest = np.full(per_member.members, -1.0)
    np.maximum.at(longest, series.owner[-1][waits], waiting_s[waits])
    bound = patience(series, interval_s)
    silent: Mask = longest >= bound
    return silent & (series.now - _last_commit(series, per_member) >= bound)


def _last_commit(series: SampleSeries, per_member: PerMember) -> Float64:
    """Return the time of each member's last new commit, (M,); minus infinity: never."""
    moved = series.committed_again & (series.owner[1:] == series.owner[:-1])
    marked = per_member.any(moved)
    last = marked.shape[0] - np.argmax(marked[::-1], axis=0)
    return np.where(marked.any(axis=0), series.at[np.minimum(last, len(series) - 1)], -np.inf)


def stuck_partitions(
    series: SampleSeries, moved: Mask, marked: Mask, waiting_s: Float64, patience_s: Float64
) -> Mask:
    """Return whether partitions wait while their owner commits others several times, (P,).

    Parameters
    ----------
    moved
        Whether the owner committed the partition in each step, bool of shape (S, P).
    marked
        Whether each member committed anything, bool of shape (S, M).
    waiting_s
        `waiting_seconds`, shape (P,).
    patience_s
        `patience` of each member, shape (M,).
    """
    stuck = np.zeros(series.partitions, dtype=bool)
    if len(series) <= STEPS:
        return stuck
    owner = series.owner[-1]
    place = np.maximum(owner, 0)
    since = np.minimum(np.searchsorted(series.at, series.now - waiting_s - 1e-6), len(series) - 1)
    # Commits of each member since the partition began to wait.
    commits = np.concatenate((np.zeros((1, marked.shape[1])), marked.cumsum(axis=0)))
    others = commits[-1, place] - commits[since, place]
    waits = (owner >= 0) & (waiting_s >= patience_s[place]) & (others >= SEVERAL)
    if not waits.any():
        return stuck
    # Turns under earlier owners do not count.
    took = _turns(series, moved & (series.owner[1:] == owner))
    turns = np.concatenate((np.zeros((1, series.partitions)), took.cumsum(axis=0)))
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

    Parameters
    ----------
    waiting_s
        `waiting_seconds` under all owners, shape (P,).
    """
    stuck = np.zeros(series.partitions, dtype=bool)
    owner = series.owner
    changes, commits = (
        np.concatenate((np.zeros((1, series.partitions)), each.cumsum(axis=0)))
        for each in ((owner[1:] != owner[:-1]) & (owner[1:] >= 0), series.committed_again)
    )
    since = np.minimum(np.searchsorted(series.at, series.now - waiting_s - 1e-6), len(series) - 1)
    columns = np.arange(series.partitions)
    handed_on = (owner[-1] >= 0) & (changes[-1] - changes[since, columns] >= _HANDED_ON)
    others = (owner[-1] >= 0) & (waiting_s < STUCK_S)
    for partition in np.flatnonzero(handed_on & (waiting_s >= STUCK_S)).tolist():
        taken = (commits[-1] - commits[since[partition]])[others]
        stuck[partition] = taken.size > 0 and np.median(taken) >= SEVERAL
    return stuck


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

    Parameters
    ----------
    rest
        Lag of each partition that is no backlog, int64 of shape (P,).
    waits
        Whether each member waited for much of the newest steps, bool of shape (M,).
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
    end, at = series.readable_end[:, partition], series.at
    per_s = max(float((end[-1] - end[0]) / (series.now - at[0])), 1e-9)

    def age_s(sample: int) -> float:
        position = series.position[sample, partition]
        arrived_at = np.interp(position, end[: sample + 1], at[: sample + 1])
        return float(at[sample] - arrived_at) + max(float(end[0] - position), 0.0) / per_s

    last = len(series) - 1
    return age_s(last) - age_s(max(last - steps, 1)) > series.step / 2


def left_behind(
    series: SampleSeries, retained: Mask, marked: Mask, rare: Mask
) -> tuple[Mask, Float64]:
    """Return partitions that fall behind while their owner keeps up with others.

    Uses the newest steps in which a partition kept its owner, and the owner committed something. If
    commits are rare, uses fewer steps, from all samples.

    Parameters
    ----------
    retained
        Whether a partition kept its owner in each step, bool of shape (S, P).
    marked
        Whether each member committed anything, bool of shape (S, M).
    rare
        Members that commit less often than samples are taken, bool of shape (M,).

    Returns
    -------
    bool of shape (P,), and the records of each that are read a second, float64 of shape (P,).
    """
    nothing = np.zeros(series.partitions)
    count = newest_steps(series)
    if len(series) <= count:
        return nothing > 0, nothing
    newest = max(len(series) - 1 - SEVERAL * count, 0)
    steps = slice(0 if rare.any() else newest, None)
    retained, owner = retained[steps], series.owner[1:][steps]
    if rare.any():
        recent = np.arange(len(owner)) >= newest
        retained = retained & (recent[:, None] | of_owner(rare, owner, none=False))
    shows = retained & np.take_along_axis(marked[steps], np.maximum(owner, 0), axis=1)
    following = shows[::-1].cumsum(axis=0)[::-1]
    wanted = np.where(of_owner(rare, series.owner[-1], none=False), SEVERAL, count)
    counts = retained & (following >= 1) & (following <= wanted)
    shows &= counts
    # The commit left records that had arrived before the step.
    behind = series.position[1:][steps] < series.readable_end[:-1][steps]
    seconds = series.seconds[steps]
    span = np.maximum(seconds @ counts, 1e-9)
    read_per_s = np.where(counts, series.advanced[steps], 0).sum(axis=0) / span
    arrived_per_s = np.where(counts, series.arrived[steps], 0).sum(axis=0) / span
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


def own_interval(series: SampleSeries, moved: Mask, due: Mask, waiting_s: Float64) -> Float64:
    """Return the usual time between commits of each partition before it began to wait, (P,).

    0 if it was never committed. Partitions that are committed after a number of records have longer
    intervals if fewer records arrive.
    """
    marks = moved.sum(axis=0)
    seconds = (due * series.seconds[:, None]).sum(axis=0) - waiting_s if len(series) > 1 else 0.0
    return np.where(marks > 0, np.maximum(seconds, 0.0) / np.maximum(marks, 1), 0.0)
