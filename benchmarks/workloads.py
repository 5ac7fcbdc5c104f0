"""The problems on which assignors are measured, drawn from fixed seeds.

Belongs here: large groups built from arrays, and groups with uneven lag. Belongs elsewhere:
measuring.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from assignors.problem import Int32, Int64, Problem
from assignors.registry import assign

TOPICS, MEMBERS, PARTITIONS = 500, 2_000, 1_000_000
Rows = Sequence[npt.NDArray[Any]]


def group(counts: npt.ArrayLike, subscriptions: Rows, lags: npt.ArrayLike | None = None) -> Problem:
    """Return the problem of a group in which no partition has an owner.

    Parameters
    ----------
    counts
        Number of partitions of each topic, shape (T,).
    subscriptions
        Numbers of the topics that each member reads, ascending.
    lags
        Lag of each partition in records, shape (P,); None: no lag.
    """
    partition_counts = np.asarray(counts, dtype=np.int64)
    partitions, members = int(partition_counts.sum()), len(subscriptions)
    weights = np.zeros(partitions) if lags is None else np.asarray(lags)
    return Problem(
        topics=tuple(f"t{number:06}" for number in range(partition_counts.size)),
        partition_counts=partition_counts,
        members=tuple(f"m{number:06}" for number in range(members)),
        subscription_offsets=np.cumsum([0, *map(len, subscriptions)]).astype(np.int64),
        subscription_topics=np.concatenate(subscriptions).astype(np.int32),
        weights=weights.astype(np.int64),
        owner=np.full(partitions, -1, dtype=np.int32),
        capacities=np.ones(members),
        instance_ids=(None,) * members,
        racks=(None,) * members,
    )


def equal_group(
    partitions: int = PARTITIONS, topics: int = TOPICS, members: int = MEMBERS
) -> Problem:
    """Return a group in which every member reads every topic, and lags follow Zipf's law."""
    rng = np.random.default_rng(partitions)
    rows = [np.arange(topics)] * members
    return group(np.full(topics, partitions // topics), rows, zipf(rng, partitions))


def owned_by(problem: Problem, owner: Int32) -> Problem:
    """Return the problem with these owners."""
    return replace(problem, owner=owner)


def one_member_gone(problem: Problem) -> Problem:
    """Return the group without the last member in its list, whose partitions have no owner.

    Before, `sticky` had assigned all partitions.
    """
    owner = assign("sticky", problem).owner
    last = len(problem.members) - 1
    rows = np.split(problem.subscription_topics, problem.subscription_offsets[1:-1])
    rest = group(problem.partition_counts, rows[:last], problem.weights)
    rest = replace(
        rest,
        racks=problem.racks[:last],
        rack_sets=problem.rack_sets,
        rack_set_of=problem.rack_set_of,
    )
    return owned_by(rest, np.where(owner == last, -1, owner).astype(np.int32))


def in_three_racks(problem: Problem) -> Problem:
    """Put members in three racks round-robin, and replicas of each partition in two racks."""
    racks = ("r0", "r1", "r2")
    sets = (frozenset[str](), *(frozenset(racks) - {rack} for rack in racks))
    rng = np.random.default_rng(3)
    return replace(
        problem,
        racks=tuple(racks[member % len(racks)] for member in range(len(problem.members))),
        rack_sets=sets,
        rack_set_of=rng.integers(1, len(sets), problem.partition_total, dtype=np.int32),
    )


def half_of_the_topics(partitions: int, topics: int, members: int) -> Problem:
    """Return a group in which each member reads a random half of the topics."""
    rng = np.random.default_rng(topics)
    rows = [np.sort(rng.choice(topics, topics // 2, replace=False)) for _ in range(members)]
    return group(np.full(topics, partitions // topics), rows)


def sparse_and_skewed(
    partitions: int = PARTITIONS, topics: int = TOPICS, members: int = MEMBERS
) -> Problem:
    """Return a group in which members read one to five topics; topic sizes follow Zipf's law."""
    rng = np.random.default_rng(5)
    sizes = 1 / np.arange(1, topics + 1)
    counts = np.floor(sizes / sizes.sum() * partitions).astype(np.int64)
    counts[0] += partitions - counts.sum()
    rows = [np.sort(rng.choice(topics, rng.integers(1, 6), replace=False)) for _ in range(members)]
    return group(counts, rows)


def zipf(rng: np.random.Generator, partitions: int) -> npt.NDArray[np.float64]:
    """Return lags proportional to 1, 1/2, 1/3 and so on, in random order."""
    ranked = 1e4 * partitions / np.arange(1, partitions + 1)
    return rng.permutation(ranked)


def scenarios(seed: int) -> Iterator[tuple[str, Problem]]:
    """Yield groups of 50 members and about 1,000 partitions, with different kinds of uneven lag."""
    rng = np.random.default_rng(seed)
    topics, members, each = 20, 50, 50
    partitions = topics * each
    everything = [np.arange(topics)] * members
    counts = np.full(topics, each)
    yield "Zipf", group(counts, everything, zipf(rng, partitions))
    yield "log-normal", group(counts, everything, rng.lognormal(8, 1.5, partitions))
    hot = rng.lognormal(8, 0.5, partitions)
    hot[rng.integers(partitions)] = hot.sum() / 10
    yield "one hot partition", group(counts, everything, hot)
    hot = rng.lognormal(6, 0.5, partitions)
    hot[:each] *= 100
    yield "hot topic", group(counts, everything, hot)
    small = [np.arange(334)] * members
    yield "many small topics", group(np.full(334, 3), small, rng.lognormal(7, 1, 1002))
    rows = [np.sort(rng.choice(topics, rng.integers(5, 12), replace=False)) for _ in range(members)]
    yield "different subscriptions", group(counts, rows, rng.lognormal(8, 1.2, partitions))


def jittered(problem: Problem, owner: Int32, seed: int) -> Problem:
    """Return the problem with these owners and with every lag changed by up to 10 %."""
    rng = np.random.default_rng(seed)
    lags: Int64 = (problem.weights * rng.uniform(0.9, 1.1, problem.weights.size)).astype(np.int64)
    return replace(problem, weights=lags, owner=owner)
