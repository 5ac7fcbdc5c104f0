"""Properties of every assignor, tested on random problems."""

import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assignors.problem import InvalidProblemError, Member, Problem
from assignors.registry import ASSIGNORS, assign, check_options
from assignors.verifier import violations
from tests.assignors.problems import LAGS, heaviest_lag, rejoin
from tests.lengths import form

NAMES = st.sampled_from(["t0", "t1", "t2", "t3"])
STICKY = ("sticky", "sticky-lag-aware")
Parts = dict[str, Any]


@st.composite
def problems(draw: st.DrawFn) -> Parts:
    """Let hypothesis choose the arguments of `Problem.of`."""
    topics = draw(st.dictionaries(NAMES, st.integers(0, 6)))
    member = st.builds(
        Member,
        topics=st.lists(NAMES, unique=True),
        owned=st.dictionaries(NAMES, st.lists(st.integers(0, 7), unique=True)),
        generation=st.none() | st.integers(0, 3),
        rack=st.none() | st.sampled_from(["r0", "r1"]),
        capacity=st.sampled_from([1.0, 1.0, 0.5, 3.0]),
    )
    lag = st.sampled_from([*LAGS, 10**6, 2**63 - 1])
    return {
        "topics": topics,
        "members": draw(st.dictionaries(st.text(max_size=3), member, max_size=5)),
        "lags": {t: draw(st.lists(lag, min_size=n, max_size=n)) for t, n in topics.items()},
        "replica_racks": draw(
            st.none() | st.just({topic: [["r0"]] * count for topic, count in topics.items()})
        ),
    }


def shuffled(values: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    """Return a dictionary with the same items in random order."""
    return dict(rng.sample(sorted(values.items(), key=lambda item: item[0]), len(values)))


@settings(max_examples=form(short=75, long=1000), deadline=None)
@given(parts=problems(), name=st.sampled_from(sorted(ASSIGNORS)), rng=st.randoms())
def test_valid_and_deterministic_assignment(parts: Parts, name: str, rng: random.Random) -> None:
    problem = Problem.of(**parts)
    assignment = assign(name, problem)
    assert not violations(problem, assignment)
    parts["topics"], parts["members"] = (
        shuffled(parts["topics"], rng),
        shuffled(parts["members"], rng),
    )
    again = assign(name, Problem.of(**parts))
    assert np.array_equal(again.owner, assignment.owner)


@settings(max_examples=form(short=75, long=1000), deadline=None)
@given(
    parts=problems(),
    name=st.sampled_from(STICKY),
    skew=st.sampled_from([{}, {"max_count_skew": 0}, {"band": 0.0}]),
)
def test_planning_again_moves_nothing(parts: Parts, name: str, skew: dict[str, Any]) -> None:
    problem = Problem.of(**parts)
    options = skew if name == "sticky-lag-aware" else {}
    first = assign(name, problem, **options)
    again = assign(name, rejoin(problem, first.owner), **options)
    assert np.array_equal(again.owner, first.owner)


@settings(max_examples=form(short=50, long=1000), deadline=None)
@given(parts=problems(), budget=st.integers(0, 6))
def test_one_more_move_never_raises_the_highest_load(parts: Parts, budget: int) -> None:
    problem = Problem.of(**parts)
    heaviest = []
    for moves in (budget, budget + 1):
        owner = assign("sticky-lag-aware", problem, max_moves=moves).owner
        held = owner >= 0
        work = np.bincount(
            owner[held], weights=problem.weights[held], minlength=len(problem.members)
        )
        heaviest.append((work / problem.capacities).max(initial=0.0))
    assert heaviest[1] <= heaviest[0] * (1 + 1e-12)


@pytest.mark.parametrize("name", STICKY)
@pytest.mark.parametrize("seed", range(5))
def test_converges_under_random_events(name: str, seed: int) -> None:
    """After members join or leave, or partitions or lags change, a second plan moves nothing."""
    rng = random.Random(seed)
    topics = {f"t{n}": rng.randint(1, 8) for n in range(5)}
    members = {f"c{n}": Member(sorted(topics)) for n in range(4)}
    history = [f"seed {seed}: {topics}"]
    for number in range(25):
        event = rng.choice(["join", "leave", "grow", "jitter"])
        history.append(event)
        if event == "join":
            members[f"n{number}"] = Member(rng.sample(sorted(topics), rng.randint(1, 5)))
        elif event == "leave" and len(members) > 1:
            del members[rng.choice(sorted(members))]
        elif event == "grow":
            topics[rng.choice(sorted(topics))] += 2
        lags = {topic: [rng.randint(0, 1000) for _ in range(n)] for topic, n in topics.items()}
        problem = Problem.of(topics, members, lags)
        first = assign(name, problem)
        assert not violations(problem, first), history
        settled = rejoin(problem, first.owner)
        assert np.array_equal(assign(name, settled).owner, first.owner), history
        if name == "sticky-lag-aware" and (problem.owner[problem.assignable] >= 0).all():
            assert heaviest_lag(problem, first.owner) <= heaviest_lag(problem, problem.owner)
        members = {
            member: replace(members[member], owned=share, generation=number)
            for member, share in first.by_member().items()
        }


def test_unknown_names_and_options_are_errors() -> None:
    with pytest.raises(InvalidProblemError, match="'best' is not one of range, roundrobin, fair"):
        check_options("best", {})
    with pytest.raises(InvalidProblemError, match=r"options\.band: sticky has no such option"):
        check_options("sticky", {"band": 1})
