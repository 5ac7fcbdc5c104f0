"""Give members those partitions of a topic that have a replica in their rack.

Belongs here: which partitions of a topic a member gets, if the flow network of `aims` is too large.
Belongs elsewhere: how many partitions it gets (`sticky`), exchanges between topics (`settling`).

Members in the same rack are equivalent here, and so are partitions with replicas in the same racks.
So each topic becomes a small table with a row for each set of replica racks, and a column for each
member rack. A cell is the number of partitions of the set that go to the rack. A small maximum flow
finds the best values.
"""

from collections import deque
from collections.abc import Sequence

import numpy as np

from assignors.numbering import within_groups
from assignors.problem import Int32, Int64, Problem
from assignors.racks import Mask

Table = list[list[int]]


def deal_by_rack(problem: Problem, owner: Int32) -> Int32:
    """Exchange partitions within topics so that more have an owner in the rack of a replica.

    For each topic, a member's number of partitions stays as in `owner`, and so does the number of
    partitions that it already owned before (`problem.owner`). A member that must give up some
    partitions of a topic keeps those with a replica in its rack. Partitions that `give_back` has
    returned to an earlier owner stay there.

    Parameters
    ----------
    problem
        P partitions, M members.
    owner
        int32 of shape (P,).

    Returns
    -------
    int32 array of shape (P,): owners such that as few partitions as possible are read from another
    rack. Partitions and members with unknown racks do not count.
    """
    if problem.rack_set_of is None or not any(problem.racks):
        return owner
    kept = _keep_near(problem, owner)
    changed = (owner >= 0) & ~_given_back(problem, owner)
    dealt = owner.copy()
    free = np.flatnonzero(changed & ~kept)
    if free.size:
        members = owner[changed & (owner != problem.owner)]
        partitions, takers = _dealt(problem, free, members)
        dealt[partitions] = takers
    dealt[kept] = problem.owner[kept]
    return dealt


def _given_back(problem: Problem, owner: Int32) -> Mask:
    """Return whether each partition has returned to an owner of an earlier generation."""
    if problem.earlier is None:
        return np.zeros(owner.size, dtype=bool)
    returned: Mask = (
        (problem.earlier == owner).any(axis=0) & (owner >= 0) & (owner != problem.owner)
    )
    return returned


def _keep_near(problem: Problem, owner: Int32) -> Mask:
    """Return which partitions stay with their owners.

    Each owner keeps as many partitions of a topic as under `owner`: first those with a replica in
    its rack.
    """
    kept: Mask = (owner == problem.owner) & (owner >= 0)
    giving = (problem.owner >= 0) & (owner != problem.owner)
    if problem.earlier is not None or problem.rack_set_of is None or not giving.any():
        return kept
    pair = problem.topic_of * np.int64(len(problem.members)) + problem.owner
    theirs = np.flatnonzero((problem.owner >= 0) & np.isin(pair, np.unique(pair[giving])))
    is_far = problem.far[problem.rack_set_of[theirs], problem.owner[theirs]]
    theirs = theirs[np.lexsort((~kept[theirs], is_far, pair[theirs]))]
    starts = np.flatnonzero(np.diff(pair[theirs], prepend=-1))
    sizes = np.diff(starts, append=theirs.size)
    stay = np.add.reduceat(kept[theirs].astype(np.int64), starts)
    kept = kept.copy()
    kept[theirs] = within_groups(sizes) < np.repeat(stay, sizes)
    return kept


def _dealt(problem: Problem, partitions: Int64, members: Int32) -> tuple[Int64, Int32]:
    """Assign K partitions, as many as possible to members in the rack of a replica.

    Parameters
    ----------
    partitions
        Partition indices, ascending; shape (K,).
    members
        The member for each of K places; shape (K,). A member that gets n partitions has n places.
        Places are sorted by topic, in any order within a topic.

    Returns
    -------
    The partitions in another order, and the new owner of each partition.
    """
    names = sorted({rack or "" for rack in problem.racks})
    rack_of = np.array([names.index(rack or "") for rack in problem.racks])
    assert problem.rack_set_of is not None  # noqa: S101 - checked by the caller
    sets, racks, topics = len(problem.rack_sets), len(names), len(problem.topics)
    examples = [int(np.flatnonzero(rack_of == rack)[0]) for rack in range(racks)]
    near = (~problem.far[:, examples]).tolist()
    topic = problem.topic_of[partitions].astype(np.int64)
    # Sort by one number that combines topic, set of racks (or rack), and index.
    by_set = topic * sets + problem.rack_set_of[partitions]
    by_rack = topic * racks + rack_of[members]
    partitions = np.sort(by_set * problem.partition_total + partitions) % problem.partition_total
    members = np.sort(by_rack * len(problem.members) + members) % len(problem.members)
    supply = np.bincount(by_set, minlength=topics * sets).reshape(topics, sets)
    demand = np.bincount(by_rack, minlength=topics * racks).reshape(topics, racks)
    cells = zip(supply.tolist(), demand.tolist(), strict=True)
    table = np.array([match_racks(kinds, takes, near) for kinds, takes in cells])
    left, room = supply - table.sum(axis=2), demand - table.sum(axis=1)
    given = np.dstack(
        (table, left)
    )  # partitions by topic, set and rack; last column: partitions for racks without a replica
    taken = np.dstack((table.transpose(0, 2, 1), room))
    first_given, first_taken = (
        (np.cumsum(sizes) - sizes.ravel()).reshape(sizes.shape) for sizes in (given, taken)
    )
    order = np.concatenate(
        (_expand(first_given[:, :, :-1], table), _expand(first_given[:, :, -1], left))
    )
    takers = np.concatenate(
        (
            _expand(first_taken[:, :, :-1].transpose(0, 2, 1), table),
            _expand(first_taken[:, :, -1], room),
        )
    )
    return partitions[order], members[takers].astype(np.int32)


def _expand(starts: Int64, sizes: Int64) -> Int64:
    """Return one array with a run of consecutive indices for each start and size."""
    sizes = sizes.ravel()
    return np.repeat(starts.ravel(), sizes) + within_groups(sizes)


def match_racks(
    supply: Sequence[int], demand: Sequence[int], near: Sequence[Sequence[bool]]
) -> Table:
    """Distribute partitions to racks, as many as possible to a rack with a replica: a maximum flow.

    Parameters
    ----------
    supply, demand
        Number of partitions of each of S kinds, and number that each of R racks takes.
    near
        Whether a kind has a replica in a rack, S rows of R values.

    Returns
    -------
    Number of partitions of each kind for each rack, S rows of R values.

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
    table: Table, left: list[int], room: list[int], near: Sequence[Sequence[bool]]
) -> list[tuple[int, int]]:
    """Find a shortest augmenting path: cells to increase and to decrease, alternately."""
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
