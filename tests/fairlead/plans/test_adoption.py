"""What consumers own, held against their plan."""

import pytest

from fairlead.plans.adoption import compare
from tests.fairlead.plans.plans import make_plan

PLAN = make_plan({"a": {"t": [0]}, "b": {"t": [1, 2]}}, {"t": [100.0, 60.0, 50.0]})


def test_group_that_follows_its_plan_has_adherence_one() -> None:
    """Every partition is where the plan wants it, and the balance is the planned one."""
    adoption = compare(PLAN, {"a": {"t": [0]}, "b": {"t": [1, 2]}})
    assert (adoption.planned, adoption.as_planned, adoption.adherence) == (3, 3, 1.0)
    assert adoption.achieved.lag_max == 110
    assert adoption.achieved.moved == 0


def test_partition_elsewhere_lowers_adherence_and_counts_as_moved() -> None:
    """The achieved balance is that of the live assignment under the plan's lag."""
    adoption = compare(PLAN, {"a": {"t": [0, 1]}, "b": {"t": [2]}})
    assert adoption.adherence == pytest.approx(2 / 3)
    assert adoption.achieved.lag_max == 160
    assert adoption.achieved.moved == 1


def test_newcomer_in_the_place_of_a_planned_member_is_not_adherence() -> None:
    """Another name with the same partitions does not follow the plan by the letter."""
    adoption = compare(PLAN, {"a": {"t": [0]}, "c": {"t": [1, 2]}})
    assert adoption.as_planned == 1
    assert adoption.achieved.lag_max == 110


def test_group_that_owns_nothing_follows_nothing() -> None:
    """An empty group has adherence 0."""
    assert compare(PLAN, {}).adherence == 0.0


def test_plan_for_nobody_is_always_followed() -> None:
    """A plan without partitions cannot be broken."""
    assert compare(make_plan({}, {}), {}).adherence == 1.0
