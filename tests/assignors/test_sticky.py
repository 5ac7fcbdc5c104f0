"""`sticky`: comparison with brute force, spread of topics, racks, and limits of moves."""

import random

import numpy as np
import pytest

from assignors import aims as exact_aims
from assignors import flow
from assignors.assignment import Assignment
from assignors.problem import Int32, Member, Problem
from assignors.registry import assign
from assignors.spread import is_even
from assignors.swaps import spread_out
from assignors.verifier import violations
from tests.assignors.problems import (
    every_owner,
    far,
    in_racks,
    kept,
    loads,
    minus_returned,
    rejoin,
    spread,
    sticky_value,
)
from tests.assignors.problems import small_problems as small
from tests.lengths import form


def aims(problem: Problem, owner: Int32) -> tuple[object, ...]:
    """Return all values that `sticky` minimises, in order."""
    return (
        *sticky_value(problem, owner),
        *spread(problem, owner),
        *minus_returned(problem, owner),
        far(problem, owner),
    )


def test_equals_the_best_of_all_assignments() -> None:
    """Brute force finds no assignment that is better in the order of `aims`.

    The long form compares about 2,000 problems.
    """
    racks_count = 0
    for seed, problem in small(form(short=500, long=2_050)):
        racked = in_racks(problem, seed)
        best = min(every_owner(racked), key=lambda owner: aims(racked, owner))
        assert aims(racked, assign("sticky", racked).owner) == aims(racked, best), f"seed {seed}"
        racks_count += far(racked, best) < far(racked, assign("sticky", problem).owner)
    assert racks_count > 10


@pytest.mark.parametrize("keep_all", [True, False])
def test_swaps_change_neither_loads_nor_kept_partitions(*, keep_all: bool) -> None:
    """Swaps improve the spread of topics, but change neither loads nor kept partitions.

    After the swaps, the spread is optimal in more than 98 % of the problems.
    """
    spread_best, improved = [], 0
    for seed, problem in small(400):
        start = flow.solve(problem, keep_all=keep_all)
        swapped = spread_out(problem, start, keep_all=keep_all)
        assert not violations(problem, Assignment(problem, swapped))
        assert sticky_value(problem, swapped) == sticky_value(problem, start), f"seed {seed}"
        assert spread(problem, swapped) <= spread(problem, start), f"seed {seed}"
        exact = assign("sticky", problem, stickiness_first=keep_all).owner
        improved += spread(problem, swapped) < spread(problem, start)
        spread_best.append(spread(problem, swapped) == spread(problem, exact))
    assert improved
    assert np.mean(spread_best) > 0.98


@pytest.mark.parametrize("seed", range(3))
def test_spreads_topics_without_the_solver(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without OR-Tools, members with equal subscriptions get nearly even shares."""
    monkeypatch.setattr(exact_aims, "_has_solver", lambda: False)
    rng = random.Random(seed)
    topics = {f"t{n}": rng.randint(1, 30) for n in range(8)}
    members = {f"c{n}": Member(sorted(topics)) for n in range(4)}
    for name in ("n0", "n1"):
        problem = Problem.of(topics, members)
        settled = assign("sticky", problem)
        members = {
            member: Member(sorted(topics), owned=share)
            for member, share in settled.by_member().items()
        }
        members[name] = Member(sorted(topics))
    problem = Problem.of(topics, members)
    ours = assign("sticky", problem)
    assert loads(problem, ours.owner)[0] - loads(problem, ours.owner)[-1] <= 1
    assert spread(problem, ours.owner)[0] <= 1.5


@pytest.mark.parametrize("seed", range(3))
def test_deals_every_topic_evenly_without_a_flow_network(seed: int) -> None:
    rng = random.Random(seed)
    topics = {f"t{n:02}": rng.randint(150, 250) for n in range(40)}
    members = {f"c{n:03}": rng.sample(sorted(topics), 20) for n in range(100)}
    problem = Problem.of(topics, members)
    ours = assign("sticky", problem).owner
    assert is_even(problem, ours)
    assert loads(problem, ours)[0] - loads(problem, ours)[-1] <= 1


def test_stickiness_first_is_the_best_plan_without_moves() -> None:
    for seed, problem in small(600):
        owned = problem.owner >= 0
        best = min(
            loads(problem, owner)
            for owner in every_owner(problem)
            if np.array_equal(owner[owned], problem.owner[owned])
        )
        ours = assign("sticky", problem, stickiness_first=True)
        assert kept(problem, ours.owner) == owned.sum(), f"seed {seed}"
        assert loads(problem, ours.owner) == best, f"seed {seed}"


def test_max_moves_is_all_or_nothing() -> None:
    """If the best plan needs more than `max_moves` moves, no partition with an owner moves."""
    for seed, problem in small(200):
        free, held = assign("sticky", problem), assign("sticky", problem, stickiness_first=True)
        needed = int((problem.owner >= 0).sum()) - kept(problem, free.owner)
        enough = assign("sticky", problem, max_moves=needed)
        assert np.array_equal(enough.owner, free.owner), f"seed {seed}"
        if needed:
            too_few = assign("sticky", problem, max_moves=needed - 1)
            assert np.array_equal(too_few.owner, held.owner), f"seed {seed}"


def improvable(problem: Problem, owner: np.ndarray[tuple[int], np.dtype[np.int32]]) -> bool:
    """Return whether moves can even out two members whose counts differ by two or more.

    A partition moves from one member to the other directly, or along a chain of members: each
    member of the chain gets a partition and gives up another one.
    """
    counts = Assignment(problem, owner).counts
    gives = {
        member: set(problem.topic_of[owner == member].tolist())
        for member in range(len(problem.members))
    }
    for start in range(len(problem.members)):
        reached, queue = {start}, [start]
        while queue:
            for topic in gives[queue.pop()]:
                fresh = set(problem.subscribers_of(topic).tolist()) - reached
                reached |= fresh
                queue.extend(fresh)
        if any(counts[member] + 2 <= counts[start] for member in reached):
            return True
    return False


@pytest.mark.parametrize("seed", range(6))
def test_no_chain_of_moves_improves_very_uneven_loads(seed: int) -> None:
    """No chain of moves improves a plan, even for topics of very different sizes."""
    rng = random.Random(seed)
    topics = {f"t{n:02}": 6000 // (n + 1) for n in range(30)}
    members = {
        f"c{n:02}": Member(topics=rng.sample(sorted(topics), rng.randint(1, 3))) for n in range(40)
    }
    problem = Problem.of(topics, members)
    first = assign("sticky", problem)
    assert not violations(problem, first)
    assert not improvable(problem, first.owner)
    again = rejoin(problem, first.owner)
    assert np.array_equal(assign("sticky", again).owner, first.owner)
    fewer = rejoin(problem, np.where(first.owner == 0, -1, first.owner).astype(np.int32))
    assert not improvable(fewer, assign("sticky", fewer).owner)
