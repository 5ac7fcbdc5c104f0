"""Validation of problems: each error names the invalid value and its place."""

from typing import Any

import numpy as np
import pytest

from assignors.metrics import measure
from assignors.problem import InvalidProblemError, Member, Problem
from assignors.registry import ASSIGNORS, assign
from assignors.verifier import violations

LARGEST = 2**63 - 1


def member(**fields: Any) -> Member:
    """Return a member whose fields may have invalid types."""
    return Member(["t"], **fields)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"topics": ["t"]}, r"^topics: \['t'\] is not an object"),
        ({"topics": {"t": -1}}, "^topics.t: -1 is not a number of partitions"),
        ({"topics": {"t": True}}, "^topics.t: True is not an integer"),
        ({"topics": {"t": 1.0}}, "^topics.t: 1.0 is not an integer"),
        ({"topics": {"t": 2**31}}, "^topics.t: 2147483648 is not a number of partitions"),
        ({"topics": {"t": 10**9}}, "^topics: 1000000000 partitions are more than"),
        ({"topics": {1: 1}}, "^topics: the name 1 is not a text"),
        ({"members": ["a"]}, "^members: .* is not an object"),
        ({"members": {"a": "t"}}, "^members.a.topics: 't' is not a list"),
        ({"members": {"a": None}}, "^members.a.topics: None is not a list"),
        ({"members": {"a": ["t", "t"]}}, "^members.a.topics: names 't' twice"),
        ({"members": {"a": [1]}}, "^members.a.topics: 1 is not a topic's name"),
        ({"members": {"a": Member(["t"], owned={"t": [0, 0]})}}, "^members.a.owned.t: names a"),
        ({"members": {"a": Member(["t"], owned={"t": [-1]})}}, "^members.a.owned.t: .* range"),
        ({"members": {"a": member(owned={"t": 0})}}, "^members.a.owned.t: 0 is not a list"),
        ({"members": {"a": member(owned=["t"])}}, "^members.a.owned: .* is not an object"),
        ({"members": {"a": member(generation="1")}}, "^members.a.generation: '1' is not"),
        ({"members": {"a": Member(["t"], generation=-2)}}, "^members.a.generation: -2 is no"),
        ({"members": {"a": Member(["t"], capacity=0.0)}}, "^members.a.capacity: 0.0 is not a pos"),
        ({"members": {"a": Member(["t"], capacity=10**400)}}, "^members.a.capacity: 1000"),
        ({"members": {"a": Member(["t"], capacity=float("nan"))}}, "^members.a.capacity: nan"),
        ({"members": {"a": Member(["t"], capacity=True)}}, "^members.a.capacity: True is not"),
        ({"members": {"a": Member(["t"], rack="")}}, "^members.a.rack: '' is not a text"),
        (
            {"members": {n: Member(["t"], instance_id="i") for n in "ab"}},
            "^members.b.instance_id: 'i' is a's too",
        ),
        ({"lags": {"t": [1, 2]}}, "^lags.t: 2 values for 3 partitions"),
        ({"lags": {"t": [1, 2, -3]}}, "^lags.t: -3 is negative"),
        ({"lags": {"t": [1, 2, float("nan")]}}, "^lags.t: nan is not an integer"),
        ({"lags": {"t": [1, 2, 3.0]}}, "^lags.t: 3.0 is not an integer"),
        ({"lags": {"t": [1, 2, True]}}, "^lags.t: True is not an integer"),
        ({"lags": {"t": [1, 2, LARGEST + 1]}}, "^lags.t: 9223372036854775808 does not fit"),
        ({"lags": {"t": [[1], [2], [3]]}}, r"^lags.t: \[1\] is not an integer"),
        ({"lags": {"t": "123"}}, "^lags.t: '123' is not a list"),
        ({"lags": {"u": [1]}}, "^lags.u: the topic is not in topics"),
        ({"arrival_rates": {"t": [1, 2, -1]}}, "^arrival_rates.t: a rate is negative"),
        ({"arrival_rates": {"t": [1, 2, None]}}, "^arrival_rates.t: None is not a number"),
        ({"replica_racks": {"t": [["r"]]}}, "^replica_racks.t: 1 values for 3 partitions"),
        ({"replica_racks": {"t": [["r"], ["r"], "r"]}}, "^replica_racks.t: 'r' is not a list"),
        ({"replica_racks": {"t": [["r"], [1], []]}}, "^replica_racks.t: a rack is not a text"),
    ],
)
def test_error_names_the_value_and_its_place(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidProblemError, match=message):
        Problem.of(**{"topics": {"t": 3}, "members": {"a": ["t"]}, **arguments})


def owner(members: dict[str, Member]) -> list[int]:
    """Return the owners of a topic's three partitions, after invalid claims are dropped."""
    owners: list[int] = Problem.of({"t": 3}, members).owner.tolist()
    return owners


def test_claims_on_unsubscribed_or_missing_partitions_are_dropped() -> None:
    members = {
        "a": Member([], {"t": [0]}, generation=9),
        "b": Member(["t", "gone"], {"t": [0, 7], "gone": [0]}, generation=1),
    }
    assert owner(members) == [1, -1, -1]


def test_the_order_of_the_input_does_not_matter() -> None:
    problem = Problem.of({"t": 1, "s": 2}, {"b": ["t", "s"], "a": ["s"]}, {"s": [1, 2], "t": [3]})
    assert (problem.topics, problem.members) == (("s", "t"), ("a", "b"))
    assert problem.weights.tolist() == [1, 2, 3]
    assert problem.subscription_topics.tolist() == [0, 0, 1]


@pytest.mark.parametrize("name", ASSIGNORS)
@pytest.mark.parametrize(
    ("topics", "members", "shares"),
    [
        ({}, {}, {}),
        ({"t": 2}, {}, {}),
        ({"t": 0}, {"a": ["t"]}, {"a": {}}),
        ({"t": 2}, {"a": []}, {"a": {}}),
        ({"t": 1}, {"a": ["t", "gone"], "b": []}, {"a": {"t": [0]}, "b": {}}),
    ],
)
def test_problem_with_nothing_to_assign_is_valid(
    name: str, topics: dict[str, int], members: dict[str, list[str]], shares: dict[str, Any]
) -> None:
    problem = Problem.of(topics, members)
    assignment = assign(name, problem)
    assert assignment.by_member() == shares
    assert not violations(problem, assignment)
    assert measure(problem, assignment).gap == 0.0


@pytest.mark.parametrize("name", ASSIGNORS)
def test_lags_whose_sum_overflows_are_summed_exactly(name: str) -> None:
    members = {"a": Member(["t"], {"t": [0, 1, 2, 3]}), "b": Member(["t"])}
    problem = Problem.of({"t": 4}, members, {"t": np.full(4, LARGEST)})
    metrics = measure(problem, assign(name, problem))
    assert metrics.lag_max == metrics.lag_lower_bound == 2 * LARGEST
    assert metrics.gap == 0.0
