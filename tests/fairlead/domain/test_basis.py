"""Differences between a group's subscriptions and partitions now and when its plan was made."""

import pytest

from fairlead.domain.basis import differences
from tests.fairlead.workflows.plans import make_plan

PLAN = make_plan({"a": {"t": [0], "u": [0]}, "b": {"t": [1]}}, {"t": [10.0, 20.0], "u": [5.0]})
BOTH = {"a": ["t", "u"], "b": ["u", "t"]}
COUNTS = {"t": 2, "u": 1}


def test_group_that_is_as_planned_has_no_differences() -> None:
    """A different order of subscriptions, or topics outside the plan, are no differences."""
    assert differences(PLAN, BOTH, COUNTS | {"other": 9}) == []


@pytest.mark.parametrize(
    ("subscriptions", "counts", "expected"),
    [
        ({"a": ["t", "u"]}, COUNTS, ["members that left: b"]),
        (BOTH | {"c": ["t"]}, COUNTS, ["new members: c"]),
        (BOTH | {"b": ["t"]}, COUNTS, ["members with another subscription: b"]),
        (BOTH, {"t": 3, "u": 1}, ["topic t has 3 partitions instead of 2"]),
        (BOTH, {"t": 2}, ["topic u has 0 partitions instead of 1"]),
        ({}, COUNTS, ["members that left: a, b"]),
    ],
)
def test_each_difference_is_named(
    subscriptions: dict[str, list[str]], counts: dict[str, int], expected: list[str]
) -> None:
    assert differences(PLAN, subscriptions, counts) == expected


def test_a_long_list_of_differences_is_cut() -> None:
    """Of eight new members, five are named and the others counted."""
    new_members = {f"n{number}": ["t", "u"] for number in range(8)}
    assert differences(PLAN, BOTH | new_members, COUNTS) == [
        "new members: n0, n1, n2, n3, n4, and 3 more"
    ]
