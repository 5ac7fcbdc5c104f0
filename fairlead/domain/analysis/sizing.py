"""The number of consumers that a group needs; partitions are not split.

Belongs here: the smallest number that keeps up, and a remedy if more consumers do not help. Does
not: capacities (`capacities`), nor starting or stopping consumers.
"""

from bisect import bisect_left, insort
from dataclasses import dataclass
from math import ceil
from typing import Final

import numpy as np

from assignors.problem import Problem
from fairlead.common.words import listed, plural, rate
from fairlead.domain.analysis.forecast import Outlook
from fairlead.domain.analysis.peers import Peers, sole_readers
from fairlead.domain.analysis.sample_series import Float64, Mask, median

#: Records a second. Maximum rounding error of a sum of loads.
SLACK: Final = 1e-6
#: Number of partition sizes for which the number of larger partitions is checked.
_SIZES: Final = 64


@dataclass(frozen=True)
class Size:
    """Number of consumers now, and the number needed.

    Parameters
    ----------
    now
        Members that subscribe to a topic with partitions.
    wanted
        The smallest number that keeps up with the present load; None: unknown, or more consumers do
        not help.
    why
        One sentence.
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
    late: bool,
    known: bool,
    throttled: bool = False,
) -> Size:
    """Return the number of consumers that a group needs.

    Parameters
    ----------
    problem, outlook, peers
        The group, its expected loads and capacities, and its reader sets.
    target_utilisation
        Target utilisation of a member.
    late
        Whether the group is or will be over the objective: it needs at least the present number.
    known
        Whether the diagnosis is not `unknown`.
    throttled
        Whether only throttled partitions are behind.
    """
    now = int(problem.readers.size)
    unknown = Size(now, None, "The capacity of members is unknown.")
    if not known or not now:
        return unknown
    if throttled:
        return Size(now, None, "More consumers would not read throttled partitions faster.")
    of_partition = peers.of_partition
    fastest = fastest_readers(problem, outlook.capacities)[problem.topic_of]
    too_large = (of_partition >= 0) & (outlook.arrivals > fastest)
    sets: list[_SetSize] = []
    for number in np.unique(of_partition[of_partition >= 0]).tolist():
        readers = problem.readers[peers.reader_set[problem.readers] == number]
        speeds = outlook.capacities[readers]
        if not (speeds > 0).any():
            return unknown
        partitions = of_partition == number
        sets.append(_set_size(outlook, partitions, speeds, target_utilisation, late=late))
    if too_large.any():
        largest = int(np.where(too_large, outlook.arrivals, -1.0).argmax())
        return Size(now, None, _too_large(problem, outlook, largest, target_utilisation))
    # The only readers of some topics may be too few while other members have time.
    alone = [
        _set_size(outlook, partitions, speeds, target_utilisation, late=late)
        for members, partitions in sole_readers(problem)
        if (speeds := outlook.capacities[members]).any()
        and late
        and surely_too_much(outlook.arrivals[partitions], target_utilisation * speeds)
    ]
    # The sentence is about the set that lacks the most consumers, or has the fewest to spare.
    short = max([*sets, *alone], key=lambda readers: readers.wanted - readers.now)
    wanted = max(sum(readers.wanted for readers in sets), now + short.wanted - short.now)
    why = _why(problem, outlook, short, target_utilisation, late=late)
    if len(sets) > 1:
        why += f" In all, {plural(wanted, 'consumer')} would be enough; there are {now:,}."
    return Size(now, wanted, why)


@dataclass(frozen=True, eq=False)
class _SetSize:
    """Number of consumers of a reader set, or of the only readers of some topics.

    Parameters
    ----------
    partitions
        The set's partitions, bool of shape (P,).
    now, wanted
        Number of consumers now, and the number needed.
    can, usual
        Total capacity, and the median consumer's.
    alone
        Whether a single partition needs more than a consumer's target utilisation.
    """

    partitions: Mask
    now: int
    can: float
    usual: float
    wanted: int
    alone: bool


def _set_size(
    outlook: Outlook, partitions: Mask, speeds: Float64, target_utilisation: float, *, late: bool
) -> _SetSize:
    usual = median(speeds[speeds > 0])
    loads, room = outlook.arrivals[partitions], target_utilisation * usual
    there = target_utilisation * speeds if late else np.zeros(0)
    wanted = max(there.size + missing_members(loads, there, room), 1)
    alone = bool(loads.max() > max(room, there.max(initial=0.0)))
    return _SetSize(partitions, speeds.size, float(speeds.sum()), usual, wanted, alone)


def fastest_readers(problem: Problem, speeds: Float64) -> Float64:
    """Return the capacity of each topic's fastest subscriber, float64 of shape (T,); 0: none."""
    fastest = np.zeros(len(problem.topics))
    reader = np.repeat(np.arange(len(problem.members)), np.diff(problem.subscription_offsets))
    np.maximum.at(fastest, problem.subscription_topics, speeds[reader])
    return fastest


def partitions_wanted(problem: Problem, place: int, load: float, room: float) -> int:
    """Return the number of partitions with which each gets at most `room` records a second."""
    count = int(problem.partition_counts[problem.topic_of[place]])
    return count * ceil(load / max(room, SLACK))


def _why(
    problem: Problem, outlook: Outlook, readers: _SetSize, target_utilisation: float, *, late: bool
) -> str:
    """Return the sentence about the consumers of a reader set.

    It has their total capacity if the group is over the objective, else the usual capacity.
    """
    partitions = readers.partitions & problem.assignable
    total = float(outlook.arrivals[readers.partitions].sum())
    arrive, can, each = (
        rate(outlook.in_records(per_s, partitions)) for per_s in (total, readers.can, readers.usual)
    )
    of, planned = "", f" (target utilisation {target_utilisation:.0%})"
    if not (readers.partitions | ~problem.assignable).all():
        numbers = np.unique(problem.topic_of[partitions]).tolist()
        topics = [problem.topics[number] for number in numbers]
        of = f" of {listed(topics, at_most=3)}"
    if readers.alone:
        planned += ", except for a partition that needs more"
    arrive += f" arrive in {plural(int(partitions.sum()), 'partition')}{of}"
    room, reason = target_utilisation * readers.usual, " (partitions are not split)"
    if late:
        there = f"{arrive}, and {plural(readers.now, 'consumer')} can process {can}{planned}"
        more = readers.wanted - readers.now
        if not more:
            return f"{there}: no more are needed."
        whole = reason if total <= target_utilisation * readers.can + (more - 1) * room else ""
        return f"{there}: {more:,} more, of {each} each, would be enough{whole}."
    whole = reason if total <= (readers.wanted - 1) * room else ""
    are = "is" if readers.now == 1 else "are"
    enough = (
        f"{plural(readers.wanted, 'consumer')} would be enough{whole}; there {are} {readers.now:,}."
    )
    if readers.wanted == readers.now:
        enough = f"{plural(readers.now, 'consumer')} {are} enough{whole}."
    return f"{arrive}, and a consumer can process {each}{planned}: {enough}"


def _too_large(problem: Problem, outlook: Outlook, place: int, target_utilisation: float) -> str:
    """Describe the remedy for a partition that is too large for the fastest consumer."""
    of_topic, load = problem.topic_of[place], float(outlook.arrivals[place])
    fastest = float(fastest_readers(problem, outlook.capacities)[of_topic])
    chosen = np.arange(outlook.arrivals.size) == place
    arrive, can = (rate(outlook.in_records(per_s, chosen)) for per_s in (load, fastest))
    wanted = partitions_wanted(problem, place, load, target_utilisation * fastest)
    return (
        f"{arrive} arrive in {problem.partition_label(place)}, and the fastest consumer can "
        f"process {can}: more consumers do not help. {wanted:,} partitions of "
        f"{problem.topics[of_topic]} instead of "
        f"{int(problem.partition_counts[of_topic]):,} would, or cheaper records."
    )


def surely_too_much(loads: Float64, rooms: Float64) -> bool:
    """Whether no assignment of whole partitions keeps each member within its capacity.

    Parameters
    ----------
    loads, rooms
        Loads of partitions and capacities of members, records a second. Loads above the largest
        capacity are cut to it.

    Notes
    -----
    A member with capacity r can own at most r / x partitions with a load of x or more.
    O(`_SIZES` M).

    Examples
    --------
    >>> surely_too_much(np.full(9, 40.0), np.full(4, 99.0))
    True
    >>> surely_too_much(np.full(8, 40.0), np.full(4, 99.0))
    False
    """
    if loads.sum() > rooms.sum():
        return True
    largest = np.sort(np.minimum(loads, rooms.max(initial=0.0)))[::-1]
    largest = largest[largest > SLACK]
    if not largest.size:
        return False
    last = np.unique(np.linspace(0, largest.size - 1, _SIZES).astype(np.int64))
    fit = np.floor((rooms[:, None] + SLACK) / largest[last]).sum(axis=0)
    return bool((last + 1 > fit).any())


def missing_members(loads: Float64, rooms: Float64, room: float) -> int:
    """Return the number of additional members that are needed for all partitions.

    Parameters
    ----------
    loads
        Loads of partitions, records a second; cut to the largest capacity.
    rooms, room
        Capacities of the present members, and of each additional one.

    Notes
    -----
    Best fit, decreasing: each partition, the largest first, goes to the member with the least
    sufficient room, else to an additional member. At most 11/9 of the optimum. O(P log P + P M).

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
