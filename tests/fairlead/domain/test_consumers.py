"""Changes that a plan makes for each consumer."""

from fairlead.domain.as_problem import planned
from fairlead.domain.consumers import ConsumerChange, changes, load
from tests.fairlead.workflows.plans import make_plan

PLAN = make_plan({"a": {"t": [0]}, "b": {"t": [1, 2]}}, {"t": [100.0, 60.0, 50.0]})


def test_heaviest_consumer_before_comes_first() -> None:
    before = {"a": {"t": [0, 1]}, "b": {"t": [2]}}
    assert changes(PLAN, before, planned(PLAN)) == [
        ConsumerChange("a", 2, 160, 1, 100),
        ConsumerChange("b", 1, 50, 2, 110),
    ]


def test_new_and_former_consumers_are_listed_with_zeros() -> None:
    assert changes(PLAN, {"old": {"t": [0]}}, {"new": {"t": [0]}}) == [
        ConsumerChange("old", 1, 100, 0, 0),
        ConsumerChange("new", 0, 0, 1, 100),
    ]


def test_partition_without_a_weight_has_no_records() -> None:
    """A partition without a weight in the plan is counted, but adds no records."""
    assert load(PLAN, {"a": {"t": [0, 9], "other": [0]}}, "a") == (3, 100)
