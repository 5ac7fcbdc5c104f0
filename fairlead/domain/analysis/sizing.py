"""How many consumers a group needs, partitions being whole.

Belongs here: the fewest that would be in time, and what else would help where more of them would
not. Does not: how fast members are (`capacities`), nor adding or removing any.
"""

from bisect import bisect_left, insort
from dataclasses import dataclass
from math import ceil
from typing import Final

import numpy as np

from assignors.problem import Problem
from fairlead.common.words import listed, plural, rate
from fairlead.domain.analysis.forecast import Outlook
from fairlead.domain.analysis.looks import Float64, Mask, median
from fairlead.domain.analysis.peers import Peers

#: A member may be so much fuller than full, records a second: what is left of rounding.
SLACK: Final = 1e-6
#: At so many sizes of partitions is looked whether too many are so large.
_SIZES: Final = 64


@dataclass(frozen=True)
class Size:
    """How many consumers there are, and how many would do.

    Parameters
    ----------
    now
        Members that read a topic with partitions.
    wanted
        The fewest that would be in time at the present load; None where that is not known, or more
        consumers do not help.
    why
        One sentence.
    """

    now: int
    wanted: int | None
    why: str


def size(
    problem: Problem, outlook: Outlook, peers: Peers, headroom: float, *, late: bool, known: bool
) -> Size:
    """Say how many consumers a group needs.

    Parameters
    ----------
    problem, outlook, peers
        The group, what is expected of it, and who reads the same topics.
    headroom
        The share of a member's speed that is planned with.
    late
        Whether the group is late, or will be: it never needs fewer than there are.
    known
        Whether enough was seen.
    """
    now = int(problem.readers.size)
    unknown = Size(now, None, "What members can do is not known yet.")
    if not known or not now:
        return unknown
    set_of = peers.topics[problem.topic_of]
    fastest = fastest_readers(problem, outlook.capacities)[problem.topic_of]
    too_large = (set_of >= 0) & (outlook.arrivals > fastest)
    parts: list[_Part] = []
    for number in np.unique(set_of[set_of >= 0]).tolist():
        readers = problem.readers[peers.linked[problem.readers] == number]
        speeds = outlook.capacities[readers]
        if not (speeds > 0).any():
            return unknown
        usual, mine = median(speeds[speeds > 0]), set_of == number
        loads, room = outlook.arrivals[mine], headroom * usual
        there = headroom * speeds if late else np.zeros(0)
        wanted = max(there.size + missing_members(loads, there, room), 1)
        alone = bool(loads.max() > max(room, there.max(initial=0.0)))
        parts.append(_Part(mine, readers.size, float(speeds.sum()), usual, wanted, alone))
    if too_large.any():
        largest = int(np.where(too_large, outlook.arrivals, -1.0).argmax())
        return Size(now, None, _too_large(problem, outlook, largest, headroom))
    wanted = sum(part.wanted for part in parts)
    # The sentence is about the part that lacks most consumers, or has fewest to spare.
    short = max(parts, key=lambda part: part.wanted - part.now)
    why = _why(problem, outlook, short, headroom, late=late)
    if len(parts) > 1:
        why += f" In all {plural(wanted, 'consumer')} would do, and there are {now:,}."
    return Size(now, wanted, why)


@dataclass(frozen=True, eq=False)
class _Part:
    """Consumers that share topics, and the partitions of these topics.

    Parameters
    ----------
    mine
        Its partitions, bool of shape (P,).
    now, wanted
        How many consumers there are, and how many would do.
    can, usual
        Capacity of all of them together, and of the median one.
    alone
        Whether a partition needs more than is planned of a consumer.
    """

    mine: Mask
    now: int
    can: float
    usual: float
    wanted: int
    alone: bool


def fastest_readers(problem: Problem, speeds: Float64) -> Float64:
    """Return the speed of each topic's fastest subscriber, float64 of shape (T,); 0 without one."""
    found = np.zeros(len(problem.topics))
    reader = np.repeat(np.arange(len(problem.members)), np.diff(problem.subscription_offsets))
    np.maximum.at(found, problem.subscription_topics, speeds[reader])
    return found


def partitions_wanted(problem: Problem, place: int, load: float, room: float) -> int:
    """Return how many partitions a topic needs for at most `room` records a second in each."""
    count = int(problem.partition_counts[problem.topic_of[place]])
    return count * ceil(load / max(room, SLACK))


def _why(problem: Problem, outlook: Outlook, part: _Part, headroom: float, *, late: bool) -> str:
    """Return the sentence about a part's consumers.

    If the group is late, what they do, and the usual speed of those that are missing; else the
    usual speed alone.
    """
    mine, total = part.mine & problem.assignable, float(outlook.arrivals[part.mine].sum())
    arrive, can, each = (
        rate(outlook.in_records(per_s, mine)) for per_s in (total, part.can, part.usual)
    )
    of, planned = "", f", of which {headroom:.0%} is planned"
    if not (part.mine | ~problem.assignable).all():
        topics = [problem.topics[number] for number in np.unique(problem.topic_of[mine]).tolist()]
        of = f" of {listed(topics, at_most=3)}"
    if part.alone:
        planned += ", except for a partition that needs more"
    arrive += f" arrive in {plural(int(mine.sum()), 'partition')}{of}"
    room, reason = headroom * part.usual, " (a partition is not split)"
    if late:
        there = f"{arrive}, and {plural(part.now, 'consumer')} can do {can}{planned}"
        more = part.wanted - part.now
        if not more:
            return f"{there}: no more are needed."
        whole = reason if total <= headroom * part.can + (more - 1) * room else ""
        return f"{there}: {more:,} more would do, of {each} each{whole}."
    whole = reason if total <= (part.wanted - 1) * room else ""
    are = "is" if part.now == 1 else "are"
    return (
        f"{arrive}, and a consumer does {each}{planned}: {plural(part.wanted, 'consumer')} would do"
        f"{whole}, and there {are} {part.now:,}."
    )


def _too_large(problem: Problem, outlook: Outlook, place: int, headroom: float) -> str:
    """Describe what helps a partition that its topic's fastest consumer cannot keep up with."""
    topic, partition = problem.partition_name(place)
    of_topic, load = problem.topic_of[place], float(outlook.arrivals[place])
    fastest = float(fastest_readers(problem, outlook.capacities)[of_topic])
    mine = np.arange(outlook.arrivals.size) == place
    arrive, can = (rate(outlook.in_records(per_s, mine)) for per_s in (load, fastest))
    wanted = partitions_wanted(problem, place, load, headroom * fastest)
    return (
        f"{arrive} arrive in {topic}-{partition}, and its fastest consumer can do {can}: more "
        f"consumers do not help it. {wanted:,} partitions of {topic} instead of "
        f"{int(problem.partition_counts[of_topic]):,} would, or cheaper records."
    )


def surely_too_much(loads: Float64, rooms: Float64) -> bool:
    """Whether no assignment of whole partitions leaves each member enough room.

    Parameters
    ----------
    loads, rooms
        Of partitions and members, records a second. A load that no member has room for is cut.

    Notes
    -----
    Of partitions of x or more, a member with room for r takes at most r / x. O(`_SIZES` M).

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
    """Return how many members are missing, so that each partition finds room in one.

    Parameters
    ----------
    loads
        Of the partitions, records a second; none is counted as more than any member has room for.
    rooms, room
        What members have room for that are there, and what each further member has.

    Notes
    -----
    Each partition, the largest first, goes where it leaves the least room; where it fits nowhere,
    to a further member (best fit, decreasing: at most 11/9 of the fewest). O(P log P + P M).

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
