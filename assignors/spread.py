"""How evenly topics are spread over members, and the best possible spread.

Belongs here: partitions of each topic on each member, the figure in plans, and its lower bound.
Does not: spreading them (`aims`, `even`, `swaps`).
"""

from typing import NamedTuple

import numpy as np

from assignors.problem import Int32, Int64, Problem


class Pairs(NamedTuple):
    """Number of partitions of each topic on each member that has some: int64 arrays."""

    topic: Int64
    member: Int64
    size: Int64


def pairs(problem: Problem, owner: Int32) -> Pairs:
    """Count partitions by topic and member, ascending by both."""
    members = max(len(problem.members), 1)
    number, sizes = _sizes(problem, owner)
    return Pairs(number // members, number % members, sizes)


def _sizes(problem: Problem, owner: Int32) -> tuple[Int64, Int64]:
    """Return the pairs with partitions, as topic x M + member, and each pair's partition count.

    int64 arrays, ascending by pair.
    """
    every = _table(problem, owner)
    if every is None:
        number, sizes = np.unique(_numbers(problem, owner), return_counts=True)
        return number, sizes.astype(np.int64)
    number = np.flatnonzero(every)
    return number, every[number]


def _table(problem: Problem, owner: Int32) -> Int64 | None:
    """Return the partitions of every pair, by number; None if most would be empty."""
    if not problem.dense:
        return None
    return np.bincount(_numbers(problem, owner)).astype(np.int64, copy=False)


def _numbers(problem: Problem, owner: Int32) -> Int64:
    """Return the pair number of each partition with an owner."""
    number = problem.topic_of * np.int64(len(problem.members)) + owner
    return number if owner.size and owner.min() >= 0 else number[owner >= 0]


def even_shares(problem: Problem) -> Int64:
    """Return the lower bound on each topic's largest share, int64 of shape (T,); at least 1."""
    readers = np.maximum(problem.subscriber_counts, 1)
    return np.maximum(-(-problem.partition_counts // readers), 1)


def worst(problem: Problem, owner: Int32) -> tuple[int, int]:
    """Return the worst topic's largest share and even share: numerator and denominator.

    (0, 1) if nothing is assigned.

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
    """Whether every topic's shares differ by at most one partition, the best possible spread.

    Shares of N // S and N // S + 1 have the least sum of squares for a topic of N partitions and S
    readers. The sum over all topics is at its minimum only if the sum of every topic is.
    """
    sizes = _table(problem, owner)
    if sizes is None:
        _, sizes = _sizes(problem, owner)
    readers = problem.subscriber_counts[problem.subscriber_counts > 0]
    share, larger = np.divmod(problem.partition_counts[problem.subscriber_counts > 0], readers)
    least = int((larger * (share + 1) ** 2 + (readers - larger) * share**2).sum())
    return int(np.dot(sizes, sizes)) == least
