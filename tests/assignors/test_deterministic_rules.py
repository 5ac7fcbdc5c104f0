"""The assignors that ignore who owns what: the documents' examples and the loops as published."""

from collections import Counter

import numpy as np
import pytest

from assignors.problem import Int32, Problem
from assignors.registry import assign
from tests.assignors.problems import random_problem

KIP_49_TOPICS = {"T1": 2, "T2": 1, "T3": 2, "T4": 1, "T5": 2}
KIP_49_MEMBERS = {
    "C1": ["T1", "T2", "T3", "T4", "T5"],
    "C2": ["T1", "T3", "T5"],
    "C3": ["T1", "T3", "T5"],
    "C4": ["T1", "T2", "T3", "T4", "T5"],
}
KIP_49_RESULTS = {
    "range": {
        "C1": {"T1": [0], "T2": [0], "T3": [0], "T4": [0], "T5": [0]},
        "C2": {"T1": [1], "T3": [1], "T5": [1]},
        "C3": {},
        "C4": {},
    },
    "roundrobin": {
        "C1": {"T1": [0], "T3": [0], "T5": [0]},
        "C2": {"T1": [1], "T3": [1], "T5": [1]},
        "C3": {},
        "C4": {"T2": [0], "T4": [0]},
    },
    "fair": {
        "C1": {"T2": [0], "T3": [0]},
        "C2": {"T1": [0], "T3": [1]},
        "C3": {"T1": [1], "T5": [0]},
        "C4": {"T4": [0], "T5": [1]},
    },
}


@pytest.mark.parametrize("name", KIP_49_RESULTS)
def test_example_of_kip_49(name: str) -> None:
    """Range, round robin and fair give what the proposal prints."""
    problem = Problem.of(KIP_49_TOPICS, KIP_49_MEMBERS)
    assert assign(name, problem).by_member() == KIP_49_RESULTS[name]


def test_round_robin_example_of_the_source_analysis() -> None:
    """Round robin piles four partitions on the member that may read most."""
    members = {"C0": ["t0"], "C1": ["t0", "t1"], "C2": ["t0", "t1", "t2"]}
    problem = Problem.of({"t0": 1, "t1": 2, "t2": 3}, members)
    assert assign("roundrobin", problem).by_member() == {
        "C0": {"t0": [0]},
        "C1": {"t1": [0]},
        "C2": {"t1": [1], "t2": [0, 1, 2]},
    }


@pytest.mark.parametrize(
    ("name", "shares"),
    [
        ("range", {"C0": {"t0": [0, 1]}, "C1": {"t0": [2]}}),
        ("lag-aware", {"C0": {"t0": [0]}, "C1": {"t0": [1, 2]}}),
    ],
)
def test_example_of_kafka_5337(name: str, shares: dict[str, dict[str, list[int]]]) -> None:
    """160,000 and 50,000 records become 100,000 and 110,000."""
    lags = {"t0": [100_000, 60_000, 50_000]}
    problem = Problem.of({"t0": 3}, {"C0": ["t0"], "C1": ["t0"]}, lags)
    assert assign(name, problem).by_member() == shares


def published_lag_aware(problem: Problem) -> Int32:
    """KAFKA-5337's loop, as published."""
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
    """KIP-49's loop, as described; of equally loaded members, who has least of the topic."""
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
def test_equals_the_published_loop(name: str, published: object, *, equal: bool) -> None:
    """The vectorised rules give each partition to whom the loops give it."""
    assert callable(published)
    for seed in range(300):
        problem = random_problem(seed, equal=equal, topics=6, partitions=15, members=5)
        ours = assign(name, problem).owner
        assert np.array_equal(ours, published(problem)), f"seed {seed}"


def test_lag_aware_compares_totals_beyond_int64_exactly() -> None:
    """Sums that overflow int64 are compared as the integers they are."""
    largest = 2**63 - 1
    lags = {"t": [largest, largest, largest, largest - 1, largest - 1, 5, 4]}
    problem = Problem.of({"t": 7}, {"a": ["t"], "b": ["t"]}, lags)
    assert np.array_equal(assign("lag-aware", problem).owner, published_lag_aware(problem))
