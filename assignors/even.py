"""Dealing every topic evenly, if the loads become even, too.

Belongs here: the best assignment for groups without owners in which topics and loads can be even at
once, found without a flow. Does not: all other groups (`flow`, `aims`).
"""

import numpy as np
import numpy.typing as npt

from assignors.problem import Int32, Int64, Problem

Mask = npt.NDArray[np.bool_]

# Maximum number of members with too few partitions that are tried, the emptiest first.
_TAKERS = 8


def deal(problem: Problem) -> Int32 | None:
    """Give the S readers of N partitions N // S or N // S + 1 each, and members even loads.

    Parameters
    ----------
    problem
        P partitions without owners.

    Returns
    -------
    int32 array of shape (P,): no assignment has more even loads, or topics on more members. None:
    the search found no such assignment, perhaps because there is none.

    Notes
    -----
    After even shares, the rest of each topic goes to the members with the fewest partitions, topics
    with the fewest readers first. Then members with too many pass some to members with too few.
    O(P + T M log M).
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
    """Give the remaining partitions of each topic to the members with the smallest loads.

    Returns whether a member got a partition of a topic, bool of shape (T, M); changes `loads`.
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
    """Even out the loads: members with too many pass a topic's extra partition to others.

    Parameters
    ----------
    more, loads
        From `_deal_rest`; changed in place.

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
