"""What consumers own, held against their plan."""

import pytest

from fairlead.workflows.adoption import compare
from tests.fairlead.workflows.plans import make_plan

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


def test_newcomer_with_the_share_of_a_member_that_is_gone_follows_the_plan() -> None:
    """As after a rolling restart without lasting names: the plan is held against who lives."""
    adoption = compare(PLAN, {"a": {"t": [0]}, "c": {"t": [1, 2]}})
    assert (adoption.planned, adoption.as_planned) == (3, 3)
    assert adoption.achieved.moved == 0


def test_members_that_are_gone_do_not_count_in_the_balance() -> None:
    """An even group stays even when all its members are replaced: 1.0, not 2.0."""
    plan = make_plan({"a": {"t": [0]}, "b": {"t": [1]}}, {"t": [50.0, 50.0]})
    achieved = compare(plan, {"c": {"t": [0]}, "d": {"t": [1]}}).achieved
    assert achieved.lag_max / achieved.lag_mean == 1.0


def test_share_of_a_member_that_left_must_be_where_the_plan_puts_it_then() -> None:
    """With one member alive, all is its; one partition that it does not have is not as planned."""
    assert compare(PLAN, {"a": {"t": [0, 1, 2]}}).adherence == 1.0
    assert compare(PLAN, {"a": {"t": [0, 1]}}).adherence == pytest.approx(2 / 3)


def test_partitions_that_came_later_do_not_change_what_was_planned() -> None:
    """They are placed among the others as followers do, and not counted."""
    adoption = compare(
        PLAN, {"a": {"t": [0, 1, 3]}, "c": {"t": [2, 4]}}, {"c": ["u"]}, {"t": 5, "u": 1}
    )
    assert adoption.planned == 3


def test_group_that_owns_nothing_follows_nothing() -> None:
    """An empty group has adherence 0."""
    assert compare(PLAN, {}).adherence == 0.0


def test_plan_for_nobody_is_always_followed() -> None:
    """A plan without partitions cannot be broken."""
    assert compare(make_plan({}, {}), {}).adherence == 1.0
