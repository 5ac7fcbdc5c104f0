"""How evenly topics are spread over members, and the best possible spread.

Belongs here: counts of each topic's partitions on each member, the figure for the spread of a plan,
and its lower bound. Belongs elsewhere: spreading topics (`aims`, `even`, `swaps`).
"""

from typing import NamedTuple

import numpy as np

from assignors.problem import Int32, Int64, Problem


class Pairs(NamedTuple):
    """Pairs of a topic and a member, and the number of the topic's partitions on the member.

    Only pairs with partitions. int64 arrays of equal length.
    """

    topic: Int64
    member: Int64
    size: Int64


def pairs(problem: Problem, owner: Int32) -> Pairs:
    """Count the partitions of each topic on each member; in order of topic, then member."""
    members = max(len(problem.members), 1)
    number, sizes = _sizes(problem, owner)
    return Pairs(number // members, number % members, sizes)


def _sizes(problem: Problem, owner: Int32) -> tuple[Int64, Int64]:
    """Return the index and the partition count of each pair of topic and member with partitions.

    A pair's index is topic x M + member. int64 arrays, ascending by index.
    """
    every = _table(problem, owner)
    if every is None:
        number, sizes = np.unique(_numbers(problem, owner), return_counts=True)
        return number, sizes.astype(np.int64)
    number = np.flatnonzero(every)
    return number, every[number]


def _table(problem: Problem, owner: Int32) -> Int64 | None:
    """Return the number of partitions of each pair of topic and owner; index as in `_numbers`.

    None if there are too many pairs.
    """
    if not problem.dense:
        return None
    return np.bincount(_numbers(problem, owner)).astype(np.int64, copy=False)


def _numbers(problem: Problem, owner: Int32) -> Int64:
    """Return the index of the pair (topic, owner) of each partition that has an owner."""
    number = problem.topic_of * np.int64(len(problem.members)) + owner
    return number if owner.size and owner.min() >= 0 else number[owner >= 0]


def even_shares(problem: Problem) -> Int64:
    """Return each topic's even share: partitions divided by subscribers, rounded up; at least 1.

    int64 of shape (T,). In every assignment, a topic's largest share is at least its even share.
    """
    readers = np.maximum(problem.subscriber_counts, 1)
    return np.maximum(-(-problem.partition_counts // readers), 1)


def worst(problem: Problem, owner: Int32) -> tuple[int, int]:
    """Return largest share and even share of the topic with the highest ratio of these two values.

    Returns (0, 1) if nothing is assigned.

    Examples
    --------
    >>> problem = Problem.of({"t": 4, "u": 2}, {"a": ["t", "u"], "b": ["t", "u"]})
    >>> worst(problem, np.array([0, 0, 0, 1, 1, 1], np.int32))  # u is all on b
    (2, 1)
    """
    number, sizes = _sizes(problem, owner)
    if not sizes.size:
        return 0, 1
    even = even_shares(problem)[number // len(problem.members)]
    at = int(np.argmax(sizes / even))
    return int(sizes[at]), int(even[at])


def is_even(problem: Problem, owner: Int32) -> bool:
    """Return whether every topic has the best spread: its shares differ by at most one partition.

    For a topic with N partitions and S readers, shares of N // S and N // S + 1 have the least sum
    of squares. The sum over all topics is minimal only if the sum of every topic is minimal.
    """
    sizes = _table(problem, owner)
    if sizes is None:
        _, sizes = _sizes(problem, owner)
    readers = problem.subscriber_counts[problem.subscriber_counts > 0]
    share, larger = np.divmod(problem.partition_counts[problem.subscriber_counts > 0], readers)
    least = int((larger * (share + 1) ** 2 + (readers - larger) * share**2).sum())
    return int(np.dot(sizes, sizes)) == least
