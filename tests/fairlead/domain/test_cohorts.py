"""Cohorts (groups that are planned together): their groups, due times and planning runs."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.domain.cohorts import cadence_of, discover, due, groups_in, stretches
from fairlead.domain.policy import Discovery, Policy

ORDERS = Policy(groups="orders-*", cohort="orders")
HOURLY = Policy(groups="hourly", cadence=timedelta(hours=1))


def at(hour: int, minute: int) -> datetime:
    return datetime(2026, 3, 1, hour, minute, tzinfo=UTC)


def test_discovery_gathers_included_groups_in_order() -> None:
    groups = ["orders-us", "zeta", "orders-eu", "test-1", "audit"]
    found = discover(groups, Discovery(include=("*",), exclude=("test-*",)), [ORDERS])
    assert list(found.items()) == [
        ("audit", ["audit"]),
        ("orders", ["orders-eu", "orders-us"]),
        ("zeta", ["zeta"]),
    ]


def test_excluded_group_is_not_planned_while_its_partition_is_still_known() -> None:
    discovery = Discovery(exclude=("payments",))
    assert groups_in(["payments"], ["payments", "audit"], discovery, []) == {}
    assert groups_in(["payments"], ["audit"], discovery, []) == {}


def test_group_that_moved_into_a_cohort_is_not_planned_under_its_own_name() -> None:
    groups = ["orders-eu", "orders-us"]
    assert groups_in(["orders-eu"], groups, Discovery(), [ORDERS]) == {}
    assert groups_in(["orders-eu", "orders"], groups, Discovery(), [ORDERS]) == dict.fromkeys(
        groups, "orders"
    )


@given(st.lists(st.booleans(), max_size=40))
def test_stretches_cover_exactly_the_chosen_cohorts(chosen: list[bool]) -> None:
    ordered = [str(number) for number in range(len(chosen))]
    wanted = [name for name, taken in zip(ordered, chosen, strict=True) if taken]
    ranges = [
        (ordered.index(first), ordered.index(last)) for first, last in stretches(wanted, ordered)
    ]
    covered = [ordered[index] for first, last in ranges for index in range(first, last + 1)]
    assert covered == wanted
    assert all(following[0] > last + 1 for (_, last), following in pairwise(ranges))


@pytest.mark.parametrize(
    ("decided", "tick", "expected"),
    [
        (None, at(10, 15), ["hourly", "often"]),
        (at(9, 59), at(10, 0), ["hourly", "often"]),
        (at(10, 2), at(10, 15), ["often"]),
        (at(10, 2), at(11, 0), ["hourly", "often"]),
    ],
)
def test_cohort_is_due_once_in_each_interval_of_its_cadence(
    decided: datetime | None, tick: datetime, expected: list[str]
) -> None:
    """Hourly intervals start at the full hour, even if the last run was late.

    A cohort without a cadence is due at every tick.
    """
    decided_at = {"hourly": decided, "often": decided} if decided else {}
    assert due(["hourly", "often"], [HOURLY], decided_at, tick) == expected


def test_named_cohort_is_due_by_its_shortest_cadence() -> None:
    rules = [
        Policy(groups="a-*", cohort="all", cadence=timedelta(hours=6)),
        Policy(groups="b-*", cohort="all", cadence=timedelta(hours=1)),
    ]
    assert cadence_of("all", rules) == timedelta(hours=1)
    decided_at = {"a-1": at(10, 1), "b-1": at(10, 2)}
    assert due(["all"], rules, decided_at, at(10, 45)) == []
    assert due(["all"], rules, decided_at, at(11, 0)) == ["all"]


def test_decision_on_one_group_does_not_count_for_its_cohort() -> None:
    fleet = [Policy(groups="f-*", cohort="fleet", cadence=timedelta(hours=6))]
    decided_at = {f"f-{number}": at(6, 2) for number in range(10)} | {"f-7": at(12, 1)}
    assert due(["fleet"], fleet, decided_at, at(12, 15)) == ["fleet"]
    assert due(["fleet"], fleet, dict.fromkeys(decided_at, at(12, 1)), at(12, 15)) == []


def test_groups_outside_the_last_sample_make_no_cohort_due() -> None:
    fleet = [Policy(groups="f-*", cohort="fleet", cadence=timedelta(hours=6))]
    decided_at = {"f-1": at(12, 1), "f-gone": at(6, 2)}
    assert due(["fleet"], fleet, decided_at, at(12, 15), seen=["f-1"]) == []
    assert due(["fleet"], fleet, decided_at, at(12, 15), seen=["f-1", "f-new"]) == ["fleet"]
