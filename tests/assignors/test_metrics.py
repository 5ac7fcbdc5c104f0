"""Compare metrics of assignments, and lower bounds, with slow and simple code."""

import numpy as np

from assignors.lower_bound import lag_lower_bound, load_lower_bound
from assignors.metrics import measure
from assignors.problem import Member, Problem
from assignors.registry import assign
from tests.assignors.moves import moves
from tests.assignors.problems import (
    every_owner,
    heaviest_lag,
    random_problem,
    small_problems,
    spread,
)


def test_metrics_equal_their_definitions() -> None:
    for seed in range(100):
        problem = random_problem(seed, topics=4, partitions=6, members=5)
        assignment = assign("fair", problem)
        metrics = measure(problem, assignment)
        shares = assignment.by_member()
        counts = [sum(map(len, share.values())) for share in shares.values()]
        assert (metrics.count_min, metrics.count_max) == (min(counts), max(counts))
        pairs = sum(abs(count - other) for count in counts for other in counts) // 2
        assert metrics.balance_score == pairs
        assert metrics.lag_max == heaviest_lag(problem, assignment.owner)
        changed = moves(problem, assignment)
        moved = [move for move in changed if move.from_member]
        assert metrics.moved == len(moved)
        assert metrics.placed == len(changed) - len(moved)
        assert metrics.kept == sum(counts) - len(changed)
        assert metrics.topic_spread == float(spread(problem, assignment.owner)[0])


def test_no_assignment_beats_the_lower_bound() -> None:
    tight = []
    for seed, problem in small_problems(400):
        best = min(heaviest_lag(problem, owner) for owner in every_owner(problem))
        bound = lag_lower_bound(problem)
        assert bound <= best, f"seed {seed}"
        assert load_lower_bound(problem, problem.weights.astype(float)).load <= best + 1e-6
        tight.append(bound == best)
    assert np.mean(tight) > 0.9


def test_the_bound_accounts_for_eligibility() -> None:
    """If a topic has few subscribers, the lower bound exceeds the members' mean lag.

    Only `a` reads the topic `t`, and only `a` and `b` read `u`. These topics have 90 records, so
    `a` or `b` has at least 45. The mean of all five members is 20.
    """
    members = {"a": ["t", "u"], "b": ["u", "v"], "c": ["v"], "d": ["v"], "e": ["v"]}
    lags = {"t": [30, 10], "u": [25, 25], "v": [10]}
    problem = Problem.of({"t": 2, "u": 2, "v": 1}, members, lags)
    assert lag_lower_bound(problem) == 45
    assert load_lower_bound(problem, problem.weights.astype(float)).shared == 45.0
    nothing = np.zeros(problem.partition_total)
    assert load_lower_bound(problem, nothing) == (0.0, 0.0, -1)


def test_the_bound_accounts_for_capacity() -> None:
    """Load is lag divided by capacity: 120 records for capacities 1 and 3 are a load of 30 each."""
    members = {"a": Member(["t"], capacity=3.0), "b": Member(["t"])}
    problem = Problem.of({"t": 12}, members, {"t": [10] * 12})
    bound = load_lower_bound(problem, problem.weights.astype(float))
    assert (bound.shared, bound.load) == (30.0, 30.0)


def test_the_heaviest_partition_is_a_bound() -> None:
    problem = Problem.of({"t": 3}, {"a": ["t"], "b": ["t"]}, {"t": [1, 100, 1]})
    assert lag_lower_bound(problem) == 100
    bound = load_lower_bound(problem, problem.weights.astype(float))
    assert (bound.alone, bound.partition) == (100.0, 1)
