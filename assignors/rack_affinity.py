"""Giving members the partitions of a topic that have a replica in their rack, share by share.

Belongs here: which partitions of a topic make up each member's share, where the network of all aims
is too large. Does not: how large the shares are (`sticky`), exchanges between topics (`settling`).

Members of one rack are alike here, and so are partitions with replicas in the same racks. So each
topic is a table of a few sets of racks by a few racks, and its best filling a small maximum flow.
"""

from collections import deque

import numpy as np
import numpy.typing as npt

from assignors.flow import in_other_rack
from assignors.problem import Int32, Int64, Problem

Mask = npt.NDArray[np.bool_]
Table = list[list[int]]


def deal_by_rack(problem: Problem, owner: Int32) -> Int32:
    """Deal what changes hands anew among those who get it, as near as can be.

    Shares of topics stay what they are, and what is kept; a member that gives up some of a topic
    keeps those of its partitions that are near. What went back to an earlier owner stays there.

    Parameters
    ----------
    problem
        P partitions, M members.
    owner
        int32 of shape (P,).

    Returns
    -------
    int32 array of shape (P,): of all ways to deal a topic's free partitions to these shares, one
    with the fewest in another rack than their member, where both are known.
    """
    if problem.rack_set_of is None or not any(problem.racks):
        return owner
    racks = sorted({rack or "" for rack in problem.racks})
    rack_of = np.array([racks.index(rack or "") for rack in problem.racks])
    far = _far(problem, rack_of, len(racks))
    kept = _keep_near(problem, owner, far[:, rack_of])
    dealt = owner.copy()
    free = (owner >= 0) & ~kept & ~_given_back(problem, owner)
    receivers = (owner >= 0) & (owner != problem.owner) & ~_given_back(problem, owner)
    for first, last in zip(problem.topic_offsets, problem.topic_offsets[1:], strict=False):
        given = first + np.flatnonzero(free[first:last])
        if given.size:
            members = owner[first:last][receivers[first:last]]
            dealt[given] = _deal(members, problem.rack_set_of[given], rack_of, far)
    dealt[kept] = problem.owner[kept]
    return dealt


def _far(problem: Problem, rack_of: Int64, racks: int) -> Int64:
    """1 where a set of replicas is in none of its racks near a rack, int64 of shape (S, R)."""
    examples = np.array([np.flatnonzero(rack_of == rack)[0] for rack in range(racks)])
    sets = np.arange(len(problem.rack_sets))
    return in_other_rack(problem, np.repeat(sets, racks), np.tile(examples, sets.size)).reshape(
        sets.size, racks
    )


def _given_back(problem: Problem, owner: Int32) -> Mask:
    """Which partitions are with somebody who owned them in an earlier generation."""
    if problem.earlier is None:
        return np.zeros(owner.size, dtype=bool)
    found: Mask = (problem.earlier == owner).any(axis=0) & (owner >= 0) & (owner != problem.owner)
    return found


def _keep_near(problem: Problem, owner: Int32, far: Int64) -> Mask:
    """Say what stays: of each owner and topic as many as before, those that are near it first."""
    kept: Mask = (owner == problem.owner) & (owner >= 0)
    giving = (problem.owner >= 0) & (owner != problem.owner)
    if problem.earlier is not None or problem.rack_set_of is None or not giving.any():
        return kept
    pair = problem.topic_of * np.int64(len(problem.members)) + problem.owner
    theirs = np.flatnonzero((problem.owner >= 0) & np.isin(pair, np.unique(pair[giving])))
    is_far = far[problem.rack_set_of[theirs], problem.owner[theirs]]
    order = np.lexsort((~kept[theirs], is_far, pair[theirs]))
    theirs = theirs[order]
    starts = np.flatnonzero(np.diff(pair[theirs], prepend=-1))
    sizes = np.diff(starts, append=theirs.size)
    nth = np.arange(theirs.size) - np.repeat(starts, sizes)
    stay = np.add.reduceat(kept[theirs].astype(np.int64), starts)
    kept = kept.copy()
    kept[theirs] = nth < np.repeat(stay, sizes)
    return kept


def _deal(members: Int32, sets: Int32, rack_of: Int64, far: Int64) -> Int32:
    """Give each of K partitions to one of K members, whose order says nothing: shape (K,)."""
    kinds = np.unique(sets)
    by_set = [np.flatnonzero(sets == kind) for kind in kinds]
    by_rack = [np.sort(members[rack_of[members] == rack]) for rack in range(far.shape[1])]
    table = match_racks(
        [row.size for row in by_set], [row.size for row in by_rack], (far[kinds] == 0).tolist()
    )
    given = np.full(sets.size, -1, dtype=np.int32)
    taken = [0] * len(by_rack)
    left = []
    for partitions, row in zip(by_set, table, strict=True):
        at = 0
        for rack, count in enumerate(row):
            given[partitions[at : at + count]] = by_rack[rack][taken[rack] : taken[rack] + count]
            at, taken[rack] = at + count, taken[rack] + count
        left.append(partitions[at:])
    others = [row[start:] for row, start in zip(by_rack, taken, strict=True)]
    given[np.concatenate(left)] = np.concatenate(others)
    return given


def match_racks(supply: list[int], demand: list[int], near: list[list[bool]]) -> Table:
    """Match as much supply with near demand as can be: a maximum flow by shortest paths.

    Parameters
    ----------
    supply, demand
        How much there is of each of S kinds, and how much each of R racks takes.
    near
        Which rack may take which kind, S rows of R.

    Returns
    -------
    How much of each kind goes to each rack, S rows of R.

    Examples
    --------
    >>> match_racks([2, 1], [1, 2], [[True, True], [True, False]])
    [[0, 2], [1, 0]]
    """
    table = [[0] * len(demand) for _ in supply]
    left, room = list(supply), list(demand)
    while path := _path(table, left, room, near):
        amount = min(
            left[path[0][0]], room[path[-1][1]], *(table[kind][rack] for kind, rack in path[1::2])
        )
        for step, (kind, rack) in enumerate(path):
            table[kind][rack] += amount if step % 2 == 0 else -amount
        left[path[0][0]] -= amount
        room[path[-1][1]] -= amount
    return table


def _path(
    table: Table, left: list[int], room: list[int], near: list[list[bool]]
) -> list[tuple[int, int]]:
    """Find a shortest way to give out more: cells that take more, and in between that take less."""
    queue = deque(
        [(kind, rack)]
        for kind, places_of in enumerate(left)
        for rack, close in enumerate(near[kind])
        if places_of and close
    )
    seen: set[int] = set()
    while queue:
        path = queue.popleft()
        rack = path[-1][1]
        if room[rack]:
            return path
        if rack in seen:
            continue
        seen.add(rack)
        for kind, row in enumerate(table):
            if row[rack]:
                queue.extend(
                    [*path, (kind, rack), (kind, other)]
                    for other, close in enumerate(near[kind])
                    if close and other not in seen
                )
    return []
