"""Capacities of members, measured while members have a backlog.

Belongs here: capacities and lower bounds from samples, remembering them, and assumptions about
members that were never at their limit. Belongs elsewhere: which lag is a backlog (`commits`).

- A member with a backlog throughout several steps was *at its limit*: it consumed at its capacity,
  which is thus *measured*.
- If a member had no backlog at times, its consumption is only a lower bound of its capacity.
- A newer measurement replaces everything older. A bound replaces a measurement that it exceeds.
  Bounds fade within a day, because the member may be on another machine by then. Measurements are
  used unchanged for hours and then raised, so that a member that was slow yesterday is tried again.
- A member that was never at its limit is assumed to be as fast as its measured peers (members that
  read the same topics). If its lower bound is higher, or no peer was measured, it is assumed to be
  somewhat faster than its bound. If the assumption is wrong, the error is small, and the next
  samples show it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Final, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from fairlead.domain.analysis.commits import Commits
from fairlead.domain.analysis.sample_series import (
    Float64,
    Int32,
    Mask,
    Places,
    SampleSeries,
    median,
)
from fairlead.domain.analysis.thresholds import (
    DAY_S,
    NEGLIGIBLE,
    RECENT_STEPS,
    SEVERAL,
    STEPS,
    WEEK_S,
)

#: If a member was never at its limit, its capacity is assumed to be its lower bound times this
#: factor.
FASTER: Final = 1.3
#: If a member was never at its limit, its capacity is at most its lower bound times this factor. If
#: fewer than `SEVERAL` peers were measured, the factor is applied twice.
MORE: Final = 2.0
#: Seconds. Age up to which a measurement is used unchanged.
FRESH_S: Final = 6 * 3600.0
#: If two measured speeds of a member differ by at most this factor, the difference may be chance.
_NOISE: Final = 1.03
#: Records a second. Higher speeds are lowered to this, so that sums stay finite.
LARGEST_RATE: Final = 1e18


@dataclass(frozen=True)
class Capacity:
    """Capacity of a member, or a lower bound of it."""

    #: At least 0.
    records_per_s: float
    #: Whether the member was at its limit; if not, the value is a lower bound.
    measured: bool
    #: Time of the measurement, seconds since the epoch.
    at: float


@dataclass(frozen=True, eq=False)
class Speeds:
    """Assumed capacities of M members, in records per second; float64 of shape (M,)."""

    per_s: Float64
    #: Whether the capacity was measured; bool of shape (M,).
    measured: Mask
    #: Largest possible capacity. It exceeds `per_s` if the member was never at its limit and its
    #: lower bound is near or above the capacity of its measured peers.
    at_most: Float64
    #: Like `at_most`, but `MORE` times as much for a member that was never at its limit, if fewer
    #: than `SEVERAL` of its peers were measured.
    surely_at_most: Float64


class Intervals(NamedTuple):
    """N intervals of time, in each of which a member kept its partitions."""

    #: First and last sample, intp of shape (N,).
    first: Places
    last: Places
    #: Whether the member was at its limit, because unread records waited throughout the interval;
    #: bool of shape (N,).
    limited: Mask


def intervals(commits: Commits, member: int, *, by_commit: bool) -> Intervals:
    """Return a member's intervals from commit to commit (`by_commit`), or from sample to sample."""
    marked, steady = commits.marked[:, member], commits.steady[:, member]
    samples = np.arange(marked.size + 1)
    if by_commit:
        samples = samples[1:][marked]
    busy = np.concatenate(([False], marked & commits.busy[:, member]))
    busy[1:-1] |= busy[:-2] & busy[2:]  # a busy member may commit nothing in a single step
    busy = busy[samples]
    limited = busy[1:] & busy[:-1] if by_commit else busy[1:]
    unsteady = np.concatenate(([0], (~steady).cumsum()))[samples]
    kept = unsteady[1:] == unsteady[:-1]
    return Intervals(samples[:-1][kept], samples[1:][kept], limited[kept])


def observed_capacities(series: SampleSeries, commits: Commits) -> dict[str, Capacity]:
    """Return capacities or lower bounds by member name, from samples.

    Members that consumed nothing, or have too few samples, are missing.
    """
    capacities = {}
    for member, name in enumerate(series.members):
        capacity = _observed(series, commits, member)
        if capacity is not None and capacity.records_per_s > 0:
            capacities[name] = capacity
    return capacities


def _observed(series: SampleSeries, commits: Commits, member: int) -> Capacity | None:
    """Return the speed in the newest stretch of time in which a member was at its limit.

    If there is none, return the speed in the fastest stretch, as a lower bound. A stretch consists
    of several intervals between commits, so that the exact times of the commits matter little.
    """
    first, last, limited = intervals(commits, member, by_commit=bool(commits.rare[member]))
    if first.size < SEVERAL:
        return None
    interval_s = commits.interval_s[member]
    least = max(SEVERAL, ceil(STEPS * series.step / interval_s))
    if first.size < least:
        return None
    wanted = ceil(SEVERAL * commits.held_back_s[member] / interval_s)
    count = min(max(least, wanted), first.size)
    total = np.concatenate(([0.0], commits.consumed[:, member].cumsum()))
    records, seconds = total[last] - total[first], series.at[last] - series.at[first]
    stretches = sliding_window_view(np.arange(first.size), count)
    # Leave out the fastest and the slowest fifth: a member stops during a rebalance, and jumps if
    # offsets are reset. If commits are rare, keep all intervals, because their times are not exact.
    ends = 0.0 if commits.rare[member] else 1.0 / STEPS
    per_s = _trimmed(records[stretches], seconds[stretches], ends)
    at_limit = np.flatnonzero(limited[stretches].all(axis=1))
    after = 0
    if at_limit.size:
        after = int(at_limit[-1]) + count
        longer, now = slice(max(after - RECENT_STEPS, 0), after), float(per_s[at_limit[-1]])
        usual = float(_trimmed(records[longer], seconds[longer], ends))
        unchanged = limited[longer].all() and abs(now - usual) <= NEGLIGIBLE * usual
        speed = usual if unchanged else now
        if not (per_s[after:] > _NOISE * speed).any():
            return Capacity(speed, measured=True, at=float(series.at[last[after - 1]]))
    # The member was never at its limit, or it was faster after it had last been at its limit.
    best = after + int(per_s[after:].argmax())
    return Capacity(float(per_s[best]), measured=False, at=float(series.at[last[best + count - 1]]))


def _trimmed(records: Float64, seconds: Float64, ends: float) -> Float64:
    """Return mean records a second, ignoring the share `ends` of intervals at each extreme.

    If `ends` is 0.2, the slowest fifth and the fastest fifth of the intervals are ignored. The
    intervals are along the last axis.
    """
    count = records.shape[-1]
    cut = int(ends * count)
    middle = (records / seconds).argsort(axis=-1)[..., cut : count - cut]
    total: Float64 = np.take_along_axis(records, middle, axis=-1).sum(axis=-1)
    lasted: Float64 = np.take_along_axis(seconds, middle, axis=-1).sum(axis=-1)
    return total / lasted


def remembered(
    known: Mapping[str, Capacity], observed: Mapping[str, Capacity], now: float
) -> dict[str, Capacity]:
    """Return each member's newest measured capacity, or a later lower bound if that is higher.

    `known`: capacities from earlier analyses; `observed`: from `observed_capacities`.

    Examples
    --------
    >>> slow, more = Capacity(40.0, True, 0.0), Capacity(55.0, False, 60.0)
    >>> remembered({"a": slow}, {"a": more}, 60.0)["a"].records_per_s
    55.0
    >>> remembered({"a": slow}, {"a": Capacity(30.0, False, 60.0)}, 60.0)["a"].measured
    True
    """
    merged = {name: capacity for name, capacity in known.items() if _lasts(capacity, now)}
    for name, new in observed.items():
        if name not in merged or _replaces(new, merged[name], now):
            # If hardly any time passed between two samples, the computed speed may be nearly
            # infinite.
            per_s = min(new.records_per_s, LARGEST_RATE)
            merged[name] = replace(new, records_per_s=per_s)
    return dict(sorted(merged.items()))


def _lasts(capacity: Capacity, now: float) -> bool:
    return now - capacity.at <= (WEEK_S if capacity.measured else DAY_S)


def _replaces(new: Capacity, old: Capacity, now: float) -> bool:
    if new.measured:
        return new.at >= old.at
    if old.measured:
        return new.at > old.at and new.records_per_s > _NOISE * old.records_per_s
    return new.records_per_s >= _faded(old, now)


def _faded(bound: Capacity, now: float) -> float:
    """Return the present value of a lower bound, records a second: it falls to 0 within a day."""
    return bound.records_per_s * max(0.0, 1.0 - max(now - bound.at, 0.0) / DAY_S)


def speeds(
    members: Sequence[str],
    known: Mapping[str, Capacity],
    arrivals: Float64,
    at_rest: Mask,
    now: float,
    *,
    reader_set: Int32,
) -> Speeds:
    """Return the assumed capacity of each member.

    Measurements older than `FRESH_S` are raised with their age, by a factor of up to `FASTER` after
    a day, so that a member that was slow yesterday gets partitions again.

    Parameters
    ----------
    known
        Capacities or lower bounds, as returned by `remembered`.
    arrivals, at_rest
        For each of M members: arrivals in its partitions, records a second, float64 of shape (M,);
        and whether it has no backlog and so can process these arrivals, bool of shape (M,).
    reader_set
        Number of each member's reader set (members that share topics), as in `Peers`.
    """
    count = len(members)
    value, measured = np.zeros(count), np.zeros(count, dtype=bool)
    lasting = {name: capacity for name, capacity in known.items() if _lasts(capacity, now)}
    for index, name in enumerate(members):
        capacity = lasting.pop(name, None)
        if capacity is None:
            continue
        measured[index] = capacity.measured
        value[index] = capacity.records_per_s if capacity.measured else _faded(capacity, now)
        if capacity.measured:
            age = np.clip((now - capacity.at - FRESH_S) / (DAY_S - FRESH_S), 0.0, 1.0)
            value[index] *= 1.0 + (FASTER - 1.0) * age
    value = np.where(~measured & at_rest, np.maximum(value, arrivals), value)
    seen = value > 0
    # Slow members reach their limit first and are measured most often. So the typical capacity is
    # the upper quartile of the measured ones.
    typical = _by_set(value, measured, reader_set, _upper_quartile)
    # A member without a known capacity is assumed to be as fast as the median of its reader set, or
    # else of all members. If a deployment has replaced all members, no capacity of a present member
    # is known, and the median of former members is used.
    former = np.array([capacity.records_per_s for capacity in lasting.values()])
    any_set = value[seen] if seen.any() else former[former > 0]
    usual = _by_set(value, seen, reader_set, median)
    usual = np.where(usual > 0, usual, median(any_set) if any_set.size else 0.0)
    values = np.where(seen, value, usual)
    outdone = values > (1.0 + NEGLIGIBLE) * typical
    assumed = np.where(outdone, FASTER * values, np.maximum(typical, _NOISE * values))
    per_s = np.where(measured, value, assumed)
    # If a member's lower bound is near or above its measured peers' capacity, it may be faster
    # still.
    near = ~measured & (typical < (1.0 + NEGLIGIBLE) * values)
    at_most = np.where(near, np.maximum(per_s, MORE * value), per_s)
    # Fewer than `SEVERAL` measured peers are too few to limit the member's possible capacity.
    few = ~measured & (_by_set(value, measured, reader_set, np.size) < SEVERAL)
    return Speeds(per_s, measured, at_most, np.where(few, MORE * at_most, at_most))


def _by_set(
    value: Float64, known: Mask, reader_set: Int32, figure: Callable[[Float64], float]
) -> Float64:
    """Return `figure`, such as the median, of the known values in each member's reader set, (M,).

    A reader set is a set of members that share topics. 0 if no value in the set is known.
    """
    figures = np.zeros(value.size)
    for number in set(reader_set[known].tolist()):
        among = reader_set == number
        figures[among] = figure(value[among & known])
    return figures


def _upper_quartile(values: Float64) -> float:
    return float(np.sort(values)[(3 * values.size) // 4])
