"""Number of consumers that a group needs, if each partition has one reader.

Belongs here: the smallest number of consumers that keeps up, and what to do if more consumers do
not help. Belongs elsewhere: capacities (`capacities`).
"""

from bisect import bisect_left, insort
from dataclasses import dataclass
from math import ceil
from typing import Final, NamedTuple

import numpy as np

from assignors.problem import Problem
from fairlead.common.words import listed, plural, rate
from fairlead.domain.analysis.forecast import Outlook
from fairlead.domain.analysis.peers import Peers, sole_readers
from fairlead.domain.analysis.sample_series import Float64, Mask, Places, median
from fairlead.domain.analysis.thresholds import NAMED

#: Records a second. Maximum rounding error of a sum of loads.
SLACK: Final = 1e-6
#: Maximum number of different loads that `surely_too_much` checks.
_SIZES: Final = 64


@dataclass(frozen=True)
class Size:
    """Number of consumers now, the smallest number that keeps up, and a sentence about both.

    `wanted` is None if it is unknown, or if more consumers do not help.
    """

    now: int
    wanted: int | None
    why: str


def size(
    problem: Problem,
    outlook: Outlook,
    peers: Peers,
    target_utilisation: float,
    *,
    measured: Mask,
    late: bool,
    known: bool,
    throttled: bool = False,
) -> Size:
    """Return the number of consumers that a group needs.

    Parameters
    ----------
    measured
        Members whose capacity was measured, bool of shape (M,). For the other members, only a lower
        bound is known.
    late
        Whether the group is or will be over the objective. If so, it needs at least the present
        number.
    known
        False if the diagnosis is `unknown`.
    throttled
        Whether only throttled partitions are behind.
    """
    now = int(problem.readers.size)
    of_partition = peers.of_partition
    sets = [
        (problem.readers[peers.reader_set[problem.readers] == number], of_partition == number)
        for number in np.unique(of_partition[of_partition >= 0]).tolist()
    ]
    if not (known and now and all(outlook.capacities[members].any() for members, _ in sets)):
        return Size(now, None, "The capacity of members is unknown.")
    if throttled:
        return Size(now, None, "More consumers would not read throttled partitions faster.")
    fastest = fastest_readers(problem, outlook.capacities)[problem.topic_of]
    hot = (of_partition >= 0) & (outlook.arrivals > fastest)
    if hot.any():
        place = int(np.where(hot, outlook.arrivals, -1.0).argmax())
        what, remedy = too_large(problem, outlook, place, fastest[place], target_utilisation)
        return Size(now, None, f"{what}: more consumers do not help. {remedy}")

    def sized(members: Places, partitions: Mask) -> _SetSize:
        rooms = target_utilisation * outlook.capacities[members]
        there = rooms if late else rooms[:0]
        more = missing_members(outlook.arrivals[partitions], there, median(rooms[rooms > 0]))
        wanted = max(there.size + more, 1)
        if not late and not measured[members].any():
            wanted = min(wanted, members.size)  # the present members keep up
        return _SetSize(members, partitions, wanted)

    sizes = [sized(*of_set) for of_set in sets]
    # The only subscribers of a topic may be too few, although other members have unused capacity.
    alone = [
        sized(np.flatnonzero(members), partitions)
        for members, partitions in sole_readers(problem)
        if late
        and (speeds := outlook.capacities[members]).any()
        and surely_too_much(outlook.arrivals[partitions], target_utilisation * speeds)
    ]
    # The sentence is about the set of members that lacks the most consumers. If no set lacks
    # consumers, the sentence is about the set with the fewest superfluous consumers.
    short = max([*sizes, *alone], key=lambda of_set: of_set.wanted - of_set.members.size)
    wanted = sum(of_set.wanted for of_set in sizes)
    wanted = max(wanted, now + short.wanted - short.members.size)
    why = _why(problem, outlook, short, target_utilisation)
    if len(sets) > 1:
        why += f" In all, {plural(wanted, 'consumer')} would be enough; there are {now:,}."
    return Size(now, wanted, why)


class _SetSize(NamedTuple):
    """Members that share topics, their partitions (P,), and the number of members needed."""

    members: Places
    partitions: Mask
    wanted: int


def fastest_readers(problem: Problem, speeds: Float64) -> Float64:
    """Return the capacity of each topic's fastest subscriber, (T,); 0: no subscriber."""
    fastest = np.zeros(len(problem.topics))
    reader = np.repeat(np.arange(len(problem.members)), np.diff(problem.subscription_offsets))
    np.maximum.at(fastest, problem.subscription_topics, speeds[reader])
    return fastest


def too_large(
    problem: Problem, outlook: Outlook, place: int, fastest: float, target_utilisation: float
) -> tuple[str, str]:
    """Describe a partition that gets more than the fastest member can process, and a remedy."""
    topic, load = problem.topic_of[place], float(outlook.arrivals[place])
    count = int(problem.partition_counts[topic])
    wanted = count * ceil(load / max(target_utilisation * fastest, SLACK))
    chosen = np.arange(outlook.arrivals.size) == place
    arrive, can = (rate(outlook.in_records(float(per_s), chosen)) for per_s in (load, fastest))
    what = (
        f"{arrive} arrive in {problem.partition_label(place)}, and the fastest member can process"
    )
    remedy = f"{wanted:,} partitions of {problem.topics[topic]} instead of {count:,} would help"
    return (
        f"{what} {can} of them",
        f"{remedy}, or keys that spread records more evenly, or less time per record.",
    )


def _why(problem: Problem, outlook: Outlook, of_set: _SetSize, target_utilisation: float) -> str:
    """Return a sentence about how many consumers some topics need."""
    partitions = of_set.partitions & problem.assignable
    speeds, loads = outlook.capacities[of_set.members], outlook.arrivals[of_set.partitions]
    now, wanted = speeds.size, of_set.wanted
    allowed = target_utilisation * speeds.sum()
    arrive, can, at_target, each = (
        rate(outlook.in_records(float(per_s), partitions))
        for per_s in (loads.sum(), speeds.sum(), allowed, median(speeds[speeds > 0]))
    )
    topics = ""
    if not (of_set.partitions | ~problem.assignable).all():
        numbers = np.unique(problem.topic_of[partitions]).tolist()
        topics = f" of {listed([problem.topics[number] for number in numbers], at_most=NAMED)}"
    large = "; one partition alone takes any consumer above this utilisation"
    if loads.max() <= target_utilisation * speeds.max():
        large = ""
    enough = "no more are needed" if wanted == now else f"{wanted:,} would be enough"
    if wanted > now:
        enough = f"{wanted - now:,} more with the median capacity, {each}, would be enough"
    return (
        f"{arrive} arrive in {plural(int(partitions.sum()), 'partition')}{topics}, and "
        f"{plural(now, 'consumer')} can process {can}, or {at_target} at the target utilisation of "
        f"{target_utilisation:.0%}{large}: {enough}."
    )


def surely_too_much(loads: Float64, rooms: Float64) -> bool:
    """Return whether it is certain that no assignment keeps each member within its capacity.

    A load above the largest capacity is reduced to that capacity. A member with capacity r can own
    at most r / x partitions with a load of x or more. So no assignment is possible if, for some x,
    all members together can own fewer such partitions than there are. If false is returned, an
    assignment may or may not exist.

    Examples
    --------
    >>> surely_too_much(np.full(9, 40.0), np.full(4, 99.0))
    True
    >>> surely_too_much(np.full(8, 40.0), np.full(4, 99.0))
    False
    """
    if loads.sum() > rooms.sum() + SLACK:
        return True
    largest = np.sort(np.minimum(loads, rooms.max(initial=0.0)))[::-1]
    largest = largest[largest > SLACK]
    if not largest.size:
        return False
    last = np.unique(np.linspace(0, largest.size - 1, _SIZES).astype(np.int64))
    fit = np.floor((rooms[:, None] + SLACK) / largest[last]).sum(axis=0)
    return bool((last + 1 > fit).any())


def missing_members(loads: Float64, rooms: Float64, room: float) -> int:
    """Return how many members of capacity `room` are needed besides members of capacities `rooms`.

    The algorithm is best fit, decreasing: each partition, the largest first, goes to the member
    with the smallest room that suffices, or to an additional member if no room suffices. The result
    is at most 11/9 of the optimum. A load above the largest capacity is reduced to that capacity.

    Examples
    --------
    >>> missing_members(np.full(9, 40.0), np.full(3, 94.0), 94.0)
    2
    """
    most = max(room, float(rooms.max(initial=0.0)))
    left, more = sorted(rooms.tolist()), 0
    for load in np.sort(np.minimum(loads, most))[::-1].tolist():
        if load <= 0:
            break
        place = bisect_left(left, load - SLACK)
        if place == len(left):
            more += 1
            insort(left, max(room, load) - load)
        else:
            insort(left, left.pop(place) - load)
    return more
