"""`settling` swaps partitions to reduce cross-rack reads, without more load or moves."""

import itertools
import random

import numpy as np
import pytest

from assignors import path
from assignors.assignment import Assignment
from assignors.metrics import measure
from assignors.problem import Int32, Member, Problem
from assignors.registry import assign
from assignors.settling import settle
from assignors.verifier import violations
from tests.assignors.problems import (
    LAGS,
    far,
    heaviest_lag,
    random_racks,
    random_topics,
    rejoin,
    spread,
)

BAND = {"band": 0.0}


def racked(seed: int) -> Problem:
    """Return a random group in which some partitions have owners, and most members have racks."""
    rng = random.Random(seed)
    topics = random_topics(rng, most=3, partitions=12)
    owners = {topic: [rng.randrange(6) for _ in range(count)] for topic, count in topics.items()}
    members = {
        f"c{number}": Member(
            sorted(topics) if rng.random() < 0.8 else sorted(topics)[:1],
            {t: [p for p, owner in enumerate(row) if owner == number] for t, row in owners.items()},
            rack=rng.choice(["r0", "r1", "r2", None]),
        )
        for number in range(rng.randint(2, 4))
    }
    lags = {topic: [rng.choice(LAGS) for _ in range(count)] for topic, count in topics.items()}
    return Problem.of(topics, members, lags, replica_racks=random_racks(rng, topics))


def value(problem: Problem, owner: Int32) -> tuple[object, int]:
    """Return two figures that settling minimises, the more important first.

    The figures are the sum of squared shares, where a share is a member's number of partitions of
    one topic; and the number of partitions read across racks.
    """
    return spread(problem, owner)[2], far(problem, owner)


def test_settling_reduces_cross_rack_reads_at_no_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    """Settling reduces cross-rack reads at the same highest load, counts and number of moves."""
    nearer = 0
    for seed in range(300):
        problem = racked(seed)
        settled = assign("sticky-lag-aware", problem, **BAND)
        with monkeypatch.context() as without:
            without.setattr(path, "settle", lambda _problem, owner, _weights: owner)
            plan = assign("sticky-lag-aware", problem, **BAND)
        assert not violations(problem, settled)
        assert (settled.outcome, settled.frontier) == (plan.outcome, plan.frontier)
        assert heaviest_lag(problem, settled.owner) == heaviest_lag(problem, plan.owner)
        assert (settled.counts == plan.counts).all()
        before, after = measure(problem, plan), measure(problem, settled)
        assert (before.moved, before.placed) == (after.moved, after.placed)
        assert value(problem, settled.owner) <= value(problem, plan.owner), f"seed {seed}"
        nearer += far(problem, settled.owner) < far(problem, plan.owner)
    assert nearer > 15


def test_no_exchange_within_a_topic_would_help() -> None:
    """Swapping the new owners of two moved partitions of a topic saves no cross-rack read.

    Only partitions with equal lags are swapped.
    """
    for seed in range(200):
        problem = racked(seed)
        owner = assign("sticky-lag-aware", problem, **BAND).owner
        changed = np.flatnonzero((owner != problem.owner) & (owner >= 0)).tolist()
        for move, other in itertools.combinations(changed, 2):
            alike = problem.weights[move] == problem.weights[other]
            if problem.topic_of[move] != problem.topic_of[other] or not alike:
                continue
            if owner[move] == problem.owner[other] or owner[other] == problem.owner[move]:
                continue
            swapped = owner.copy()
            swapped[[move, other]] = owner[[other, move]]
            assert far(problem, swapped) >= far(problem, owner), f"seed {seed}"


def test_saves_the_most_traffic_if_rates_are_known() -> None:
    members = {
        "a": Member(["t"], {"t": [0, 1, 2, 3]}, rack="r0"),
        "b": Member(["t"], {}, rack="r1"),
        "c": Member(["t"], {}, rack="r2"),
    }
    replicas = {"t": [["r0"], ["r0"], ["r1"], ["r1"]]}
    lags = {"t": [10, 10, 10, 10]}
    for quiet, busy in ((2, 3), (3, 2)):
        rates = {"t": [1.0, 1.0, 1.0, 1.0]}
        rates["t"][busy] = 9.0
        problem = Problem.of({"t": 4}, members, lags, arrival_rates=rates, replica_racks=replicas)
        start = Assignment(problem, np.array([0, 0, 2, 2], np.int32))
        start.owner[busy], start.owner[quiet] = 2, 1
        owner = settle(problem, start.owner, problem.weights.astype(float))
        assert (owner[busy], owner[quiet]) == (1, 2)


def test_spreads_topics_if_plans_are_equally_good() -> None:
    """If two new members take over two partitions of each topic, each member gets one per topic."""
    members = {name: Member(["t", "u"]) for name in ("b", "c")}
    members["a"] = Member(["t", "u"], {"t": [0, 1, 2], "u": [0, 1, 2]})
    problem = Problem.of({"t": 3, "u": 3}, members, {"t": [10] * 3, "u": [10] * 3})
    plan = assign("sticky-lag-aware", problem, **BAND)
    assert all("relieves a" in reason for reason in plan.reasons.values())
    assert measure(problem, plan).topic_spread == 1.0


def test_no_exchange_that_the_next_plan_would_extend() -> None:
    """A second plan for the same group moves nothing.

    After some exchanges in the first plan, the second plan would give the partition of `t` to `c`,
    which reads only `t`. The first plan must not make such an exchange.
    """
    both = ["t", "u"]
    owned = {"t": [0], "u": [0, 1]}
    members = {"a": Member(both, owned), "b": Member(both, rack="r"), "c": Member(["t"])}
    racks = {"t": [["r"]], "u": [["r"]] * 4}
    lags = {"t": [1], "u": [1, 1, 5, 5]}
    problem = Problem.of({"t": 1, "u": 4}, members, lags, replica_racks=racks)
    plan = assign("sticky-lag-aware", problem)
    again = assign("sticky-lag-aware", rejoin(problem, plan.owner))
    assert np.array_equal(again.owner, plan.owner)
