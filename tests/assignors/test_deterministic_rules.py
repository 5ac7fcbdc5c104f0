"""Compare assignors that ignore current owners with their published algorithms."""

from collections import Counter

import numpy as np
import pytest

from assignors.problem import Int32, Problem
from assignors.registry import assign
from tests.assignors.problems import random_problem


def published_lag_aware(problem: Problem) -> Int32:
    """Assign by the algorithm of KAFKA-5337, as published."""
    owner = np.full(problem.partition_total, -1, dtype=np.int32)
    for topic, first in enumerate(problem.topic_offsets[:-1].tolist()):
        members = problem.subscribers_of(topic).tolist()
        counts, totals = dict.fromkeys(members, 0), dict.fromkeys(members, 0)
        partitions = range(first, first + int(problem.partition_counts[topic]))
        for partition in sorted(partitions, key=lambda p: (-int(problem.weights[p]), p)):
            if members:
                least = min(members, key=lambda member: (counts[member], totals[member], member))
                owner[partition] = least
                counts[least] += 1
                totals[least] += int(problem.weights[partition])
    return owner


def published_fair(problem: Problem) -> Int32:
    """Assign by KIP-49: each partition to the subscriber with the fewest partitions.

    Among equals, the subscriber with the fewest partitions of this topic gets the partition.
    """
    owner = np.full(problem.partition_total, -1, dtype=np.int32)
    load = dict.fromkeys(range(len(problem.members)), 0)
    topics = range(len(problem.topics))
    readers = [problem.subscribers_of(topic).tolist() for topic in topics]
    for topic in sorted(
        topics, key=lambda t: (len(readers[t]), -int(problem.partition_counts[t]), t)
    ):
        first = int(problem.topic_offsets[topic])
        for partition in range(first, first + int(problem.partition_counts[topic])):
            if readers[topic]:
                held = Counter(owner[first:partition].tolist())
                least = min(readers[topic], key=lambda member: (load[member], held[member], member))
                owner[partition] = least
                load[least] += 1
    return owner


@pytest.mark.parametrize("equal", [True, False])
@pytest.mark.parametrize(
    ("name", "published"), [("lag-aware", published_lag_aware), ("fair", published_fair)]
)
def test_equals_the_published_algorithm(name: str, published: object, *, equal: bool) -> None:
    assert callable(published)
    for seed in range(100):
        problem = random_problem(seed, equal=equal, topics=6, partitions=15, members=5)
        ours = assign(name, problem).owner
        assert np.array_equal(ours, published(problem)), f"seed {seed}"


def test_lag_aware_compares_totals_beyond_int64_exactly() -> None:
    """Total lags that overflow int64 are compared without rounding."""
    largest = 2**63 - 1
    lags = {"t": [largest, largest, largest, largest - 1, largest - 1, 5, 4]}
    problem = Problem.of({"t": 7}, {"a": ["t"], "b": ["t"]}, lags)
    assert np.array_equal(assign("lag-aware", problem).owner, published_lag_aware(problem))
