"""Moves that reduce traffic between racks: limits, and savings compared with the optimum."""

from itertools import product

import numpy as np
import pytest

from assignors.problem import Float64, Int32, Member, Problem
from assignors.rack_traffic import Bounds, reduce_rack_traffic
from assignors.racks import far_partitions
from assignors.spread import pairs

RACKS = ("r1", "r2", "r3")


def random_problem(seed: int, partitions: int = 6) -> tuple[Problem, Float64, Float64]:
    """Return a problem of three members in three racks, and each partition's load and traffic."""
    drawn = np.random.default_rng(seed)
    topics = {"t": partitions - partitions // 3, "u": partitions // 3}
    owner = {topic: drawn.integers(0, 3, count) for topic, count in topics.items()}
    members = {
        f"m{number}": Member(
            ["t", "u"] if number < 2 or seed % 3 else ["t"],
            {topic: np.flatnonzero(row == number) for topic, row in owner.items()},
            rack=RACKS[number],
        )
        for number in range(3)
    }
    near = {
        topic: [
            drawn.choice(RACKS, drawn.integers(1, 3), replace=False).tolist() for _ in range(count)
        ]
        for topic, count in topics.items()
    }
    problem = Problem.of(topics, members, replica_racks=near)
    traffic = drawn.integers(0, 10, partitions).astype(np.float64)
    weights = traffic + drawn.integers(0, 3, partitions)
    return problem, weights, traffic


def loads_of(problem: Problem, owner: Int32, weights: Float64) -> Float64:
    held = owner >= 0
    return np.bincount(owner[held], weights[held], len(problem.members)).astype(np.float64)


def largest_shares(problem: Problem, owner: Int32) -> Float64:
    """Return, for each topic, the largest number of its partitions that one member owns."""
    held = pairs(problem, owner)
    largest = np.zeros(len(problem.topics))
    np.maximum.at(largest, held.topic, held.size)
    return largest


def far_traffic(problem: Problem, owner: Int32, traffic: Float64) -> float:
    return float(traffic[far_partitions(problem, owner)].sum())


@pytest.mark.parametrize("seed", range(100))
def test_moves_respect_every_bound(seed: int) -> None:
    problem, weights, traffic = random_problem(seed, partitions=12)
    drawn = np.random.default_rng(seed + 1)
    before = problem.owner
    loads = loads_of(problem, before, weights)
    bounds = Bounds(
        load=float(loads.mean() * drawn.uniform(0.9, 1.6)),
        moves=int(drawn.integers(0, 8)),
        least=float(drawn.uniform(0, 3)),
        fixed=drawn.random(before.size) < 0.2,
        counts=bool(seed % 2),
    )
    after = reduce_rack_traffic(problem, before, weights, traffic, bounds)
    moved = (before != after) & (before >= 0)
    saved = far_traffic(problem, before, traffic) - far_traffic(problem, after, traffic)
    assert moved.sum() <= (bounds.moves or 0)
    assert saved >= bounds.least * moved.sum()
    assert saved > 0 or not moved.any()
    assert not (moved & bounds.fixed).any()
    assert (loads_of(problem, after, weights) <= np.maximum(bounds.load, loads) + 1e-9).all()
    even = -(-problem.partition_counts // problem.subscriber_counts)
    assert (
        largest_shares(problem, after) <= np.maximum(largest_shares(problem, before), even)
    ).all()
    ones = np.ones(before.size)
    if bounds.counts:
        assert (loads_of(problem, after, ones) == loads_of(problem, before, ones)).all()
    held = np.flatnonzero(after >= 0)
    assert problem.reads[problem.topic_of[held], after[held]].all()
    assert ((before >= 0) == (after >= 0)).all()


def least_traffic(problem: Problem, weights: Float64, traffic: Float64, bounds: Bounds) -> float:
    """Return the least traffic between racks within the bounds, by trying all assignments."""
    before = problem.owner
    limit = np.maximum(bounds.load, loads_of(problem, before, weights))
    even = -(-problem.partition_counts // problem.subscriber_counts)
    shares = np.maximum(largest_shares(problem, before), even)
    least = far_traffic(problem, before, traffic)
    for tried in product(range(3), repeat=before.size):
        owner = np.array(tried, np.int32)
        fits = problem.reads[problem.topic_of, owner].all()
        fits &= bounds.moves is None or (owner != before).sum() <= bounds.moves
        fits &= (loads_of(problem, owner, weights) <= limit).all()
        if fits and (largest_shares(problem, owner) <= shares).all():
            least = min(least, far_traffic(problem, owner, traffic))
    return least


@pytest.mark.parametrize(("room", "share"), [(1.0, 0.7), (1.5, 0.9), (3.0, 1.0)])
def test_a_greedy_search_finds_most_of_the_savings(room: float, share: float) -> None:
    saved = possible = 0.0
    for seed in range(60):
        problem, weights, traffic = random_problem(seed)
        if (problem.owner < 0).any():
            continue
        loads = loads_of(problem, problem.owner, weights)
        bounds = Bounds(room * float(loads.mean()), 3, 0.0, np.zeros(6, bool))
        after = reduce_rack_traffic(problem, problem.owner, weights, traffic, bounds)
        crossed = far_traffic(problem, problem.owner, traffic)
        saved += crossed - far_traffic(problem, after, traffic)
        possible += crossed - least_traffic(problem, weights, traffic, bounds)
    assert possible > 0
    assert saved >= share * possible
