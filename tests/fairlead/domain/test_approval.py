"""Approval of a plan by its policy, and the reasons why a plan waits for a person."""

from typing import Any

import pytest

from fairlead.domain.approval import ApprovalDecision, PlanFacts, decide_approval, requirements
from fairlead.domain.policy import Approval, Policy
from tests.fairlead.workflows.plans import DAY


def facts(**given: Any) -> PlanFacts:
    values: dict[str, Any] = {"moved": 3, "placed": 0, "improvement": 0.4, "statuses": {"OK"}}
    return PlanFacts(**(values | given))


def decided(rules: Approval, given: PlanFacts) -> ApprovalDecision:
    return decide_approval(Policy(approval=rules), given, DAY)


def test_reason_of_an_approval() -> None:
    decision = decided(Approval(automatic=True), facts(placed=2))
    assert decision.approved
    assert decision.reason == (
        "approved by policy: 3 partitions move, 2 without an owner get one, "
        "the forecast lag falls by 40.0 %"
    )


def test_all_objections_are_named() -> None:
    rules = Approval(automatic=True, max_moves=1, min_improvement=0.5)
    decision = decided(rules, facts(statuses={"STOP", "DATA_LOSS", "WARN"}))
    assert not decision.approved
    assert decision.reason == (
        "waits for a person: 3 partitions move, the policy allows 1; "
        "the forecast lag falls by 40.0 %, "
        "the policy requires at least 50.0 %; "
        "partitions are in DATA_LOSS and STOP"
    )


@pytest.mark.parametrize(
    ("rules", "given", "approved"),
    [
        ({"max_moves": 3}, {}, True),
        ({"max_moves": 2}, {}, False),
        ({"max_moves": 0}, {"moved": 0, "placed": 5}, True),
        ({"min_improvement": 0.4}, {}, True),
        ({"min_improvement": 0.41}, {}, False),
        ({}, {"improvement": -0.01}, False),
        ({"min_improvement": 0.4}, {"placed": 1, "improvement": float("-inf")}, True),
        ({}, {"improvement": None}, True),
        ({"min_improvement": 0.01}, {"improvement": None}, False),
        ({}, {"statuses": {"STALL"}}, True),
        ({"forbidden_statuses": ("STALL",)}, {"statuses": {"STALL"}}, False),
        ({"forbidden_statuses": ()}, {"statuses": {"STOP"}}, True),
    ],
)
def test_each_rule_at_its_bound(rules: Any, given: Any, *, approved: bool) -> None:
    """Limits are inclusive; a plan that assigns unowned partitions need not improve the lag."""
    assert decided(Approval(automatic=True, **rules), facts(**given)).approved is approved


@pytest.mark.parametrize(("zone", "approved"), [("Europe/Berlin", True), ("UTC", False)])
def test_hours_are_those_of_the_time_zone(zone: str, *, approved: bool) -> None:
    """At midnight UTC in winter, 01:00-05:00 has begun in Berlin, but not in UTC."""
    rules = Approval(automatic=True, hours=("01:00-05:00",), time_zone=zone)
    decision = decided(rules, facts())
    assert decision.approved is approved
    if not approved:
        assert (
            decision.reason
            == "waits for a person: the policy approves only within 01:00-05:00, UTC"
        )


def test_policy_does_not_approve_under_four_eyes() -> None:
    policy = Policy(four_eyes="database").model_copy(update={"approval": Approval(automatic=True)})
    decision = decide_approval(policy, facts(), DAY)
    assert not decision.approved
    assert "four eyes" in decision.reason


def test_requirements_name_every_rule() -> None:
    rules = Approval(automatic=True, max_moves=20, min_improvement=0.1, hours=("22:00-06:00",))
    assert requirements(Policy(approval=rules)) == [
        "a person approves, or the policy if all these conditions are met",
        "at most 20 partitions move",
        "the forecast lag falls by at least 10.0 %, unless partitions lack an owner",
        "no partition is in STOP or DATA_LOSS",
        "the time is within 22:00-06:00, UTC",
    ]
    nothing = Approval(automatic=True, forbidden_statuses=())
    assert requirements(Policy(approval=nothing)) == [
        "nothing: the policy approves every plan automatically"
    ]
