"""Assignments in which every topic is evenly spread and all loads are even.

Belongs here: finding such an assignment without a flow, for groups whose partitions have no owners.
Belongs elsewhere: all other groups (`flow`, `aims`).
"""

import numpy as np
import numpy.typing as npt

from assignors.problem import Int32, Int64, Problem

Mask = npt.NDArray[np.bool_]

# To even out loads, a partition is offered to this number of members: those with the lowest loads.
_TAKERS = 8


def deal(problem: Problem) -> Int32 | None:
    """Assign so that every topic is spread evenly over its readers, and loads are even.

    Each of the S readers of a topic with N partitions gets N // S or N // S + 1 of them.

    Parameters
    ----------
    problem
        P partitions without owners.

    Returns
    -------
    int32 array of shape (P,), optimal in loads and spread. None: the search found no such
    assignment, perhaps because there is none.

    Notes
    -----
    Every reader gets N // S partitions of each topic. Each remaining partition goes to the reader
    with the fewest partitions; topics with the fewest readers come first. Then members with too
    many partitions pass some to members with too few. O(P + T M log M).
    """
    readers = problem.readers
    if not readers.size or not problem.dense:
        return None
    subscribed = problem.subscriber_counts
    share, rest = np.divmod(problem.partition_counts, np.maximum(subscribed, 1))
    share[subscribed == 0] = 0
    rest[subscribed == 0] = 0
    topic = np.repeat(np.arange(subscribed.size), subscribed)
    members = len(problem.members)
    loads = np.bincount(problem.subscribers, share[topic], minlength=members).astype(np.int64)
    highest = loads + np.bincount(problem.subscribers[rest[topic] > 0], minlength=members)
    even = int(problem.assignable.sum()) // readers.size
    if (loads[readers] > even + 1).any() or (highest[readers] < even).any():
        return None
    more = _deal_rest(problem, rest, loads)
    if not _hand_on(problem, more, loads):
        return None
    owner = np.full(problem.partition_total, -1, dtype=np.int32)
    owner[problem.assignable] = np.repeat(
        problem.subscribers, share[topic] + more[topic, problem.subscribers]
    )
    return owner


def _deal_rest(problem: Problem, rest: Int64, loads: Int64) -> Mask:
    """Give each topic's remaining partitions to members with the lowest loads; update `loads`.

    `rest` is the number of remaining partitions of each topic. Returns which members got one more
    partition of which topics, bool of shape (T, M).
    """
    more = np.zeros((len(problem.topics), len(problem.members)), dtype=bool)
    for topic in np.argsort(problem.subscriber_counts, kind="stable").tolist():
        left = int(rest[topic])
        if left:
            members = problem.subscribers_of(topic)
            rank = loads[members] * members.size + np.arange(members.size)
            chosen = members[np.argpartition(rank, left)[:left]]
            more[topic, chosen] = True
            loads[chosen] += 1
    return more


def _hand_on(problem: Problem, more: Mask, loads: Int64) -> bool:
    """Even out the loads: members with too many partitions pass partitions to other members.

    A member passes only the additional partitions that it got in `_deal_rest`.

    Parameters
    ----------
    more, loads
        Which members have an additional partition of which topics, and the members' loads. Both are
        changed in place.

    Returns
    -------
    Whether the loads of all readers now differ by at most one.
    """
    reads, readers = problem.reads, problem.readers
    while True:
        order = readers[np.argsort(loads[readers], kind="stable")]
        giver = order[-1]
        if loads[giver] - loads[order[0]] <= 1:
            return True
        for taker in order[:_TAKERS]:
            topics = np.flatnonzero(more[:, giver] & reads[:, taker] & ~more[:, taker])
            if topics.size and loads[taker] <= loads[giver] - 2:
                more[topics[0], [giver, taker]] = False, True
                loads[giver] -= 1
                loads[taker] += 1
                break
        else:
            return False
