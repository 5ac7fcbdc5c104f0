"""Sticky assignment (KIP-54, KIP-341): even loads, then the fewest moves, then spread topics.

Belongs here: the order of the steps, and a closed form for equal subscriptions. Belongs elsewhere:
different subscriptions (`flow`), spreading topics afterwards (`aims`, `swaps`), racks (`aims`,
`rack_affinity`), conflicting claims (`claims`).
"""

from dataclasses import replace

import numpy as np

from assignors import aims, even, flow, greedy, swaps
from assignors.assignment import Assignment
from assignors.fair import fair
from assignors.filling import fill, in_turns
from assignors.numbering import within_groups
from assignors.older_claims import give_back
from assignors.options import boolean, count_or_none
from assignors.problem import Int32, Int64, Problem
from assignors.rack_affinity import deal_by_rack
from assignors.settling import settle
from assignors.spread import even_shares, is_even


def sticky(
    problem: Problem, *, stickiness_first: bool = False, max_moves: int | None = None
) -> Assignment:
    """Make loads as even as possible, then keep the most partitions, then spread topics.

    The loads are decreasingly minimal: the most loaded member has as few partitions as possible,
    then the second most loaded, and so on. No assignment has a lower KIP-54 balance score. A topic
    is spread if it is on as many members as possible (`aims` lists all aims in order).

    Parameters
    ----------
    problem
        P partitions, M members. Weights are ignored. Partitions without a current owner return to
        an earlier owner, preferably the newest. If racks are given, a choice between equally good
        assignments prefers members in the rack of a replica (KIP-881).
    stickiness_first
        Never move an owned partition, and place the others as evenly as possible (the "fairest
        sticky" alternative of KIP-54).
    max_moves
        Maximum number of moved partitions. If even loads need more, none moves, as with
        `stickiness_first`. None: no limit.

    Returns
    -------
    Assignment
        `owner`, int32 of shape (P,).

    Notes
    -----
    With equal subscriptions: O(P), or O(P log P) if members have to give up partitions. With
    different subscriptions: a min-cost flow over topics and members. The spread is optimal if all
    topics can be even, or if the flow network of `aims` is small enough. Otherwise it comes from a
    bounded search (`swaps`).

    Examples
    --------
    KIP-54's third example: a member joins, one partition moves.

    >>> from assignors.problem import Member
    >>> old = {"C0": {"t0": [0], "t1": [0]}, "C1": {"t0": [1], "t1": [1]}}
    >>> members = {name: Member(["t0", "t1"], owned=owned) for name, owned in old.items()}
    >>> problem = Problem.of({"t0": 2, "t1": 2}, {**members, "C2": ["t0", "t1"]})
    >>> sticky(problem).by_member()
    {'C0': {'t0': [0], 't1': [0]}, 'C1': {'t0': [1]}, 'C2': {'t1': [1]}}
    """
    boolean("stickiness_first", stickiness_first)
    count_or_none("max_moves", max_moves)
    owner = _solve(problem, keep_all=stickiness_first)
    if max_moves is not None:
        moved = np.count_nonzero((problem.owner >= 0) & (owner != problem.owner))
        if moved > max_moves:
            owner = _solve(problem, keep_all=True)
    return Assignment(problem, owner)


def _solve(problem: Problem, *, keep_all: bool) -> Int32:
    owner = _even_loads(problem, keep_all=keep_all)
    ties_matter = _racks_matter(problem) or problem.earlier is not None
    if is_even(problem, owner) and not ties_matter:
        return owner
    best = aims.solve(problem, owner, keep_all=keep_all)
    if best is None:
        best = give_back(problem, swaps.spread_out(problem, owner, keep_all=keep_all))
        return _by_rack_affinity(problem, best) if _racks_matter(problem) else best
    plain = _place(problem, problem.owner) if problem.equal_subscriptions else fair(problem).owner
    return greedy.usual(problem, best, plain)


def _racks_matter(problem: Problem) -> bool:
    """Return whether racks matter: some pairs of a partition and a member match, but not all.

    A pair matches if the partition has a replica in the member's rack. Partitions whose replicas'
    racks are unknown do not count.
    """
    near = [
        rack in replicas
        for replicas in problem.rack_sets
        if replicas
        for rack in {*problem.racks} - {None}
    ]
    return any(near) and not all(near)


def _by_rack_affinity(problem: Problem, owner: Int32) -> Int32:
    """Exchange partitions within topics so that more have an owner in the rack of a replica.

    Unless there are earlier owners, also exchange partitions between topics.
    """
    near = deal_by_rack(problem, owner)
    if problem.earlier is not None:
        return near
    return settle(problem, near, np.ones(problem.partition_total))


def _even_loads(problem: Problem, *, keep_all: bool) -> Int32:
    """Return owners with even loads and the fewest moves.

    Racks are ignored: in this step they would put a topic on few members.
    """
    if problem.equal_subscriptions:
        return _place(problem, problem.owner if keep_all else _give_up_surplus(problem))
    if (problem.owner < 0).all():
        evenly = even.deal(problem)
        if evenly is not None:
            return evenly
    if problem.rack_set_of is not None:
        problem = replace(problem, rack_sets=(), rack_set_of=None)
    return flow.solve(problem, keep_all=keep_all)


def _give_up_surplus(problem: Problem) -> Int32:
    """Take partitions from members that own too many, first from the topics of which they own most.

    Let there be P = q M + r partitions. Then r members keep at most q + 1, and the others at most
    q. The r members are chosen from those that own more than q, so that few partitions are taken.
    """
    owned = problem.owner[problem.owner >= 0]
    counts = np.bincount(owned, minlength=len(problem.members))
    share, larger = divmod(int(problem.assignable.sum()), max(problem.readers.size, 1))
    limit = np.full(counts.size, share)
    limit[np.flatnonzero(counts > share)[:larger]] += 1
    owner = problem.owner
    over = np.flatnonzero(counts > limit)
    if over.size:
        owner = owner.copy()
        theirs = np.flatnonzero(np.isin(owner, over))
        theirs = theirs[_order_of_keeping(problem, theirs, (counts - limit)[over])]
        nth = within_groups(counts[over])
        owner[theirs[nth >= np.repeat(limit[over], counts[over])]] = -1
    return owner


def _order_of_keeping(problem: Problem, partitions: Int64, surplus: Int64) -> Int64:
    """Sort the partitions by owner, and each owner's partitions in the order of keeping them.

    The rank of an owner's n-th partition of a topic is n, divided by the topic's even share. Low
    ranks come first. For equal ranks, the order of topics differs between owners, so that not all
    owners give up the same topic.
    """
    topics = len(problem.topics)
    owner, topic = problem.owner[partitions], problem.topic_of[partitions].astype(np.int64)
    pair = owner * np.int64(topics) + topic
    order = np.argsort(pair, kind="stable")
    changes = np.flatnonzero(np.diff(pair[order], prepend=-1))
    nth = np.empty(order.size, dtype=np.int64)
    nth[order] = within_groups(np.diff(changes, append=order.size))
    given_up_before = np.zeros(len(problem.members), dtype=np.int64)
    given_up_before[np.unique(owner)] = np.cumsum(surplus) - surplus
    turn = (topic + given_up_before[owner]) % max(topics, 1)
    return np.lexsort((nth, turn, nth / even_shares(problem)[topic], owner))


def _place(problem: Problem, owner: Int32) -> Int32:
    """Give partitions without an owner to the members with the fewest partitions.

    The partitions are in order of topic and number, and members take turns. So each member gets a
    similar part of each topic.
    """
    free = np.flatnonzero((owner < 0) & problem.assignable)
    counts = np.bincount(owner[owner >= 0], minlength=len(problem.members))
    placed = owner.copy()
    dealt = fill(counts[problem.readers], free.size)
    received = np.bincount(dealt, minlength=problem.readers.size)
    if free.size and np.ptp(received[received > 0]) > 1:
        dealt = in_turns(received)
    placed[free] = problem.readers[dealt]
    return placed
