"""How fast members are, measured: a member that stayed behind consumed as fast as it can.

Belongs here: capacities and lower bounds from looks, what is remembered of them, and what is
assumed of members that were never seen at their limit. Does not: what is a backlog (`commits`).

- A member with a backlog throughout a stretch of steps consumed at its capacity: *measured*.
- One that was idle for a part of it can do at least what it did: a lower bound.
- A newer measurement beats everything older; a bound beats a measurement that it exceeds. Bounds
  fade within a day: the name may be on another machine by then. Measurements are trusted to the
  record for hours and, as they grow old, only roughly: whoever was slow yesterday may be tried
  again when it is needed.
- A member never seen at its limit counts like its measured peers, who read the same topics. Where
  it has outdone them, or nobody was measured, it counts as somewhat faster than what it has shown.
  A wrong guess is small, and shows at the next looks.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import sliding_window_view

from fairlead.domain.analysis.commits import Commits
from fairlead.domain.analysis.looks import Float64, Looks, Mask, median
from fairlead.domain.analysis.peers import Peers

Places = npt.NDArray[np.intp]

#: Steps with a backlog that it takes to measure, where commits come within every look.
STEPS: Final = 5
#: Steps of the newest stretch that are averaged at most.
LONGEST: Final = 20
#: Commit intervals with a backlog that it takes where they come later; and times what commits hold
#: back.
INTERVALS: Final = 3
#: And steps that these take in all, where commits come hardly less often than looks.
STRETCH: Final = 6
#: How much more than it has shown a member can do that was never at its limit, it is assumed.
FASTER: Final = 1.3
#: It may turn out to do so many times what it has shown, or, if fewer peers were measured, what is
#: assumed of it.
MORE: Final = 2.0
SEVERAL: Final = 3
DAY_S: Final = 86_400.0
#: Whoever has shown more than is typical of the measured members, by so much, is faster.
OUTDONE: Final = 1.1
#: A measurement is exact for so long, and forgotten after so long.
FRESH_S: Final = 6 * 3600.0
FORGOTTEN_S: Final = 7 * DAY_S
#: What members do varies by so much from one stretch to the next.
_NOISE: Final = 1.03
#: Nobody reads more records a second; beyond it arithmetic ends in infinities.
LARGEST_RATE: Final = 1e18
#: And this is more than that: the member has become faster or slower.
_CHANGED: Final = 0.1


@dataclass(frozen=True)
class Capacity:
    """What is known of a member's speed.

    Parameters
    ----------
    records_per_s
        Its capacity, or what it can do at least; not negative.
    measured
        Whether it was at its limit.
    at
        When that was seen, seconds since the epoch.
    """

    records_per_s: float
    measured: bool
    at: float


@dataclass(frozen=True, eq=False)
class Speeds:
    """What is assumed of M members now.

    Parameters
    ----------
    per_s
        Records a second, float64 of shape (M,).
    measured
        Whether that was measured, and not assumed; bool of shape (M,).
    at_most
        What they could turn out to do, records a second, float64 of shape (M,): more than `per_s`
        for those that were never at their limit, and have shown about what measured peers can do.
    surely_at_most
        The same, and more if fewer than `SEVERAL` peers were measured, float64 of shape (M,).
    """

    per_s: Float64
    measured: Mask
    at_most: Float64
    surely_at_most: Float64


def shown(looks: Looks, commits: Commits) -> dict[str, Capacity]:
    """Return what members showed in these looks: member name to capacity or lower bound.

    Members that consumed nothing, or have not been seen for long enough, are missing.

    Notes
    -----
    The mean of steps without the fastest and the slowest fifth: a rebalance stops a member for a
    moment, an operator who sets an offset makes it jump.
    """
    found: dict[str, Capacity] = {}
    prompt = ~commits.late
    steps = np.ceil(INTERVALS * commits.held_back_s / max(looks.step, 1e-9))
    needed = np.clip(steps, STEPS, max(len(looks) - 1, STEPS)).astype(np.intp)
    whole = prompt & commits.steady.all(axis=0) & (needed == STEPS)
    found |= _by_steps(looks, commits, np.flatnonzero(whole), np.arange(len(looks) - 1), STEPS)
    for member in np.flatnonzero(prompt & ~whole).tolist():
        places = np.flatnonzero(commits.steady[:, member])
        count = max(min(int(needed[member]), places.size), STEPS)
        found |= _by_steps(looks, commits, np.array([member]), places, count)
    for member in np.flatnonzero(commits.late).tolist():
        found |= _by_intervals(looks, commits, member, int(needed[member]))
    return {name: capacity for name, capacity in found.items() if capacity.records_per_s > 0}


def _by_steps(
    looks: Looks, commits: Commits, members: Places, places: Places, count: int
) -> dict[str, Capacity]:
    """Look at members that commit in every step, in stretches of steps at some places.

    Where these are several members, they own the same partitions all the time.
    """
    if places.size < count or not members.size:
        return {}
    cells = np.ix_(places, members)
    per_s = commits.consumed[cells] / looks.seconds[places, None]
    limited, throughout = (commits.busy & commits.marked)[cells], commits.throughout[cells]
    window = np.arange(places.size - count + 1)[:, None] + np.arange(count)
    cut = count // STEPS
    middle = np.sort(per_s[window], axis=1)[:, cut : count - cut].mean(axis=1)
    best = middle.argmax(axis=0)
    most = np.maximum(middle[best, np.arange(best.size)], _without_fastest(per_s))
    seen_at = looks.at[places[best + count - 1] + 1]
    found = {
        looks.members[member]: Capacity(value, measured=False, at=at)
        for member, value, at in zip(members.tolist(), most.tolist(), seen_at.tolist(), strict=True)
    }
    for column in np.flatnonzero(limited.sum(axis=0) >= count).tolist():
        run = _newest_run(limited[:, column], throughout[:, column], count)
        if run is not None:
            first, last = run
            at, since = float(looks.at[places[last - 1] + 1]), middle[last:, column]
            found_now = Capacity(_measured(per_s[first:last, column], count), measured=True, at=at)
            if since.size and since.max() > _NOISE * found_now.records_per_s:
                # What it did later, without being at its limit, is more.
                later = places[last + int(since.argmax()) + count - 1] + 1
                found_now = Capacity(float(since.max()), measured=False, at=float(looks.at[later]))
            found[looks.members[members[column]]] = found_now
    return found


def _newest_run(busy: Mask, throughout: Mask, count: int) -> tuple[int, int] | None:
    """Return the newest stretch of enough steps between looks with a backlog: first, one past last.

    The step that leads to the first such look is none of it where the backlog may have begun in it.
    A single step without one does not end a stretch: a pause, in which nothing was committed.
    """
    filled = busy.copy()
    filled[1:-1] |= busy[:-2] & busy[2:]
    padded = np.concatenate(([False], filled, [False]))
    edges = np.flatnonzero(padded[1:] != padded[:-1])
    for first, last in zip(edges[::2][::-1].tolist(), edges[1::2][::-1].tolist(), strict=True):
        begin = first if throughout[first] else first + 1
        if last - begin >= count:
            return begin, last
    return None


def _measured(stretch: Float64, count: int) -> float:
    """Return the speed in a stretch of steps at the limit: of the newest `count` if it changed."""
    stretch = stretch[-max(LONGEST, count) :]
    newest = stretch[-count:]
    usual, now = _trimmed(stretch), _trimmed(newest)
    if abs(now - usual) > _CHANGED * usual:
        stretch, usual = newest, now
    return max(usual, float(_without_fastest(stretch)))


def _trimmed(values: Float64) -> float:
    """Return the mean without the lowest and the highest fifth."""
    cut = values.size // 5
    return float(np.sort(values)[cut : values.size - cut].mean())


def _without_fastest(values: Float64) -> Float64:
    """Return the mean without the highest value, of each column: what was consumed, but no jump."""
    mean: Float64 = (values.sum(axis=0) - values.max(axis=0)) / (values.shape[0] - 1)
    return mean


def _by_intervals(
    looks: Looks, commits: Commits, member: int, least_steps: int
) -> dict[str, Capacity]:
    """Look at the intervals between commits: the member commits less often than looks are taken.

    In stretches that last for so many steps at least.
    """
    marks = np.flatnonzero(commits.marked[:, member])
    if marks.size <= INTERVALS:
        return {}
    # When in its step a commit came nobody knows: a stretch is so long that this matters little.
    least = round(max(STRETCH, least_steps) * looks.step / commits.interval_s[member])
    count = min(max(INTERVALS, least), marks.size - 1)
    total = np.concatenate(([0.0], commits.consumed[:, member].cumsum()))
    ends = marks + 1
    busy = commits.busy[marks, member]
    rate = (total[ends[count:]] - total[ends[:-count]]) / (
        looks.at[ends[count:]] - looks.at[ends[:-count]]
    )
    behind = sliding_window_view(busy, count + 1).all(axis=1)
    measured = bool(behind.any())
    place = int(np.flatnonzero(behind)[-1]) if measured else int(rate.argmax())
    at = float(looks.at[ends[place + count]])
    return {looks.members[member]: Capacity(float(rate[place]), measured, at)}


def remembered(
    known: Mapping[str, Capacity], found: Mapping[str, Capacity], now: float
) -> dict[str, Capacity]:
    """Return what is known after a look: the newest measurement, or the best bound since.

    Parameters
    ----------
    known
        From before.
    found
        By `shown`.
    now
        Seconds since the epoch.

    Examples
    --------
    >>> slow, more = Capacity(40.0, True, 0.0), Capacity(55.0, False, 60.0)
    >>> remembered({"a": slow}, {"a": more}, 60.0)["a"].records_per_s
    55.0
    >>> remembered({"a": slow}, {"a": Capacity(30.0, False, 60.0)}, 60.0)["a"].measured
    True
    """
    merged = {}
    for name in known.keys() | found.keys():
        old, new = known.get(name), found.get(name)
        if new is not None and new.records_per_s > LARGEST_RATE:  # of looks that are no time apart
            new = replace(new, records_per_s=LARGEST_RATE)
        if old is not None and not _lasts(old, now):
            old = None
        kept = new if old is None else old if new is None else _better(old, new, now)
        if kept is not None:
            merged[name] = kept
    return dict(sorted(merged.items()))


def _lasts(capacity: Capacity, now: float) -> bool:
    return now - capacity.at <= (FORGOTTEN_S if capacity.measured else DAY_S)


def _better(old: Capacity, new: Capacity, now: float) -> Capacity:
    if new.measured:
        return new if new.at >= old.at else old
    if old.measured:
        return new if new.at > old.at and new.records_per_s > _NOISE * old.records_per_s else old
    return new if new.records_per_s >= _faded(old, now) else old


def _faded(bound: Capacity, now: float) -> float:
    """Return what a bound is still worth, records a second."""
    return bound.records_per_s * max(0.0, 1.0 - max(now - bound.at, 0.0) / DAY_S)


def speeds(
    members: Sequence[str],
    known: Mapping[str, Capacity],
    arrivals: Float64,
    at_rest: Mask,
    now: float,
    *,
    peers: Peers | None = None,
) -> Speeds:
    """Return what is assumed of each member.

    Parameters
    ----------
    members
        M names.
    known
        What is remembered.
    arrivals
        What arrives at each member's partitions now, records a second, float64 of shape (M,).
    at_rest
        Whether a member was without a backlog at the last look, bool of shape (M,): it can do what
        arrives, whatever was assumed of it.
    now
        Seconds since the epoch.
    peers
        Who reads what others read: nobody else says what a member can do. None: all the same.

    Notes
    -----
    A measurement grows uncertain: from `FRESH_S` to a day it counts up to `FASTER` times as much.
    """
    count = len(members)
    value, measured = np.zeros(count), np.zeros(count, dtype=bool)
    for index, name in enumerate(members):
        capacity = known.get(name)
        if capacity is None or not _lasts(capacity, now):
            continue
        measured[index] = capacity.measured
        value[index] = capacity.records_per_s if capacity.measured else _faded(capacity, now)
        if capacity.measured:
            age = min(max((now - capacity.at - FRESH_S) / (DAY_S - FRESH_S), 0.0), 1.0)
            value[index] *= 1.0 + (FASTER - 1.0) * age
    value = np.where(~measured & at_rest, np.maximum(value, arrivals), value)
    seen = value > 0
    # Slow members reach their limit first: of few that were measured, the fast ones are typical.
    typical = _by_peers(value, measured, peers, _upper_quartile)
    # Of whom nothing is known, the same is expected as of the others, or as of those who are gone:
    # a deployment may replace all members.
    usual = _by_peers(value, seen, peers, median)
    gone = known.keys() - set(members)
    were = np.array([known[name].records_per_s for name in gone if _lasts(known[name], now)])
    others = _of(value, seen, median) if seen.any() else _of(were, were > 0, median)
    values = np.where(seen, value, np.where(usual > 0, usual, others))
    outdone = ~measured & (values > OUTDONE * typical)
    assumed = np.where(outdone, FASTER * values, np.maximum(typical, _NOISE * values))
    per_s = np.where(measured, value, assumed)
    # Whose measured peers are hardly faster than what it has shown may be faster than they are.
    open_ = ~measured & (typical < OUTDONE * values)
    at_most = np.where(open_, np.maximum(per_s, MORE * value), per_s)
    # Nor do a few peers say what a member can do.
    few = ~measured & (_by_peers(np.ones(count), measured, peers, np.size) < SEVERAL)
    return Speeds(per_s, measured, at_most, np.where(few, MORE * at_most, at_most))


def _by_peers(
    value: Float64, known: Mask, peers: Peers | None, figure: Callable[[Float64], float]
) -> Float64:
    """Return a figure of the known members of each member's own subscription.

    Where nothing is known of these, of those that share topics with it; 0 where there are none.
    """
    found = np.zeros(value.size)
    if peers is None:
        classes = [np.zeros(value.size, np.int32)]
    elif peers.linked is peers.alike:  # all have the same subscription
        classes = [peers.alike]
    else:
        classes = [peers.linked, peers.alike]
    for numbers in classes:
        for number in set(numbers[known].tolist()):
            mine = numbers == number
            found[mine] = _of(value, mine & known, figure)
    return found


def _of(value: Float64, chosen: Mask, figure: Callable[[Float64], float]) -> float:
    return figure(value[chosen]) if chosen.any() else 0.0


def _upper_quartile(values: Float64) -> float:
    return float(np.sort(values)[(3 * values.size) // 4])
