"""Comparison of the partitions that consumers own with their plan."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from itertools import count
from types import SimpleNamespace

import pytest

from fairlead.domain.groups import LiveGroup, LiveMember
from fairlead.workflows import adoption
from fairlead.workflows.adoption import Observed, compare, observe
from tests.fairlead.workflows.plans import make_plan
from tests.stored import stored_plan

PLAN = make_plan({"a": {"t": [0]}, "b": {"t": [1, 2]}}, {"t": [100.0, 60.0, 50.0]})


def test_share_of_a_former_member_goes_to_others() -> None:
    """A new member, or else the remaining members, should own the share of a former member."""
    assert compare(PLAN, {"a": {"t": [0]}, "c": {"t": [1, 2]}}).adherence == 1.0
    assert compare(PLAN, {"a": {"t": [0, 1, 2]}}).adherence == 1.0
    assert compare(PLAN, {"a": {"t": [0, 1]}}).adherence == 0.6666


def observed(monkeypatch: pytest.MonkeyPatch, *series: dict[str, list[int]]) -> Observed:
    """Observe a group that has these assignments one after the other, four seconds apart."""
    number, now = count(), datetime.now(UTC)

    def described(groups: Iterable[str]) -> dict[str, LiveGroup]:
        place = next(number)
        members = tuple(
            LiveMember(name, name, None, name, ("t",), {"t": tuple(share)}, None)
            for name, share in series[place].items()
        )
        at = now + timedelta(seconds=4 * place)
        return {
            group: LiveGroup(group, "Stable", "range", members, {"t": 3}, at) for group in groups
        }

    clock = SimpleNamespace(monotonic=count(1).__next__, sleep=lambda _: None)
    monkeypatch.setattr(adoption, "time", clock)
    (seen,) = observe([stored_plan(PLAN)], described, patiently=[PLAN.group], until=len(series))
    assert seen.error == ""
    return seen


def test_members_that_keep_partitions_of_others_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """If a member keeps other members' partitions for 8 s, the result has its name and a remedy."""
    stuck, moving = {"a": [0, 1], "b": [2]}, {"a": [1], "b": [0, 2]}
    assert observed(monkeypatch, stuck).held_up == ""
    assert observed(monkeypatch, moving, stuck).holders == ("a",)
    held_up = observed(monkeypatch, moving, stuck, stuck).held_up
    assert held_up.startswith("for 8 s, a kept partitions that the plan gives to other members: ")
    assert "restart" in held_up
    assert observed(monkeypatch, moving, stuck, {"a": [0], "b": [1, 2]}).held_up == ""
