"""Decisions on groups are stored, and plans approved, even if another version waits."""

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from assignors.problem import Problem
from fairlead.domain.analysis.forecast import Outlook
from fairlead.domain.policy import Approval, Policy
from fairlead.domain.prospect import Prospect
from fairlead.domain.records import Decision, StoredPlan
from fairlead.errors import PlanStateError
from fairlead.store.plans import PlanStore
from fairlead.wire.document import MemberShare
from fairlead.workflows.proposal import Outcome, carry_out
from tests.fixtures.plans import SNAPSHOT_AT, MakeDraft
from tests.stored import plan_history, record_decision

pytestmark = pytest.mark.postgres

Step = Callable[..., StoredPlan]
AT_NIGHT = Policy(approval=Approval(automatic=True, hours=("03:00-04:00",)))
LATER = SNAPSHOT_AT + timedelta(hours=1)
#: An assignment that differs from the assignment in the drafts of the store's tests.
ANOTHER = {
    "orders-1": MemberShare(("t0",), {"t0": np.array([0, 1], np.int32)}),
    "orders-2": MemberShare(("t0",), {"t0": np.array([2], np.int32)}),
}
NEW = {
    "orders-1": MemberShare(("t0",), {"t0": np.array([0], np.int32)}),
    "orders-2": MemberShare(("t0",), {"t0": np.array([1, 2], np.int32)}),
}
GROWN = {"orders-3": MemberShare(("t0",), {}), **ANOTHER}


def conclude(
    store: PlanStore, decision: Decision, policy: Policy | None = None, now: datetime = SNAPSHOT_AT
) -> Outcome:
    (outcome,) = carry_out(store, [decision], [policy or Policy()], now)
    return outcome


def states(store: PlanStore, group: str = "orders") -> list[str]:
    return [row["state"] for row in plan_history(store, group)]


def test_plan_is_approved_if_the_policy_allows_it(store: PlanStore, draft: MakeDraft) -> None:
    """A policy with approval hours approves a plan in these hours; otherwise the plan waits."""
    assert conclude(store, draft("s1"), policy=AT_NIGHT, now=LATER).approval.approved is False
    assert states(store) == ["proposed"]
    conclude(store, draft("s2"), policy=AT_NIGHT)
    assert states(store) == ["expired", "approved"]
    assert plan_history(store, "orders")[1]["decision"].startswith("approved by policy: ")


def test_plan_of_a_group_with_a_stopped_partition_waits(store: PlanStore, draft: MakeDraft) -> None:
    """If a partition has the status STOP, the policy does not approve the plan."""
    stalled = conclude(store, draft("s1", statuses=frozenset({"OK", "STOP"})), policy=AT_NIGHT)
    assert not stalled.approval.approved
    assert "partitions are in STOP" in stalled.approval.reason


def test_same_plan_is_not_proposed_while_it_waits(store: PlanStore, draft: MakeDraft) -> None:
    """If a new sample leads to the assignment of a waiting version, no new version is stored."""
    conclude(store, draft("s1"))
    again = conclude(store, draft("s2", weights={"t0": np.array([9.0, 8.0, 7.0])}))
    assert again.stored.outcome == "no change"
    assert re.fullmatch(
        r"version 1, which gives the same assignment, has waited for approval since"
        r" \d{4}-\d\d-\d\d \d\d:\d\d UTC;"
        r" newest analysis: the most loaded member gets lighter",
        again.stored.reason,
    )
    assert states(store) == ["proposed"]


#: Arrival rates of t0's partitions in records/s, and the reason to keep the old plan, if there is
#: one. Each member can read 100 records/s.
ARRIVALS = {
    "a bit better": ([90.0, 40.0, 85.0], "which a new version would improve by only "),
    "worse": ([60.0, 50.0, 90.0], "which is at least as good as a new version"),
    "much better": ([90.0, 90.0, 10.0], ""),
    "good as it is": ([90.0, 10.0, 10.0], "which still brings the group within its objective"),
}


def prospect(rates: list[float]) -> Prospect:
    """Return the forecast input for two members without lag, at these arrival rates."""
    none = np.zeros(3)
    outlook = Outlook(np.array(rates), none, none, none, np.array([100.0, 100.0]))
    problem = Problem.of({"t0": 3}, {"orders-1": ["t0"], "orders-2": ["t0"]})
    return Prospect(problem, outlook, 1800.0)


def test_proposal_is_replaced_only_by_a_better_one(store: PlanStore, draft: MakeDraft) -> None:
    """A waiting plan is replaced only if a new plan is better by the policy's minimum."""
    policy = Policy(approval=Approval(min_improvement=0.5))
    for group, (rates, merit) in ARRIVALS.items():
        conclude(store, draft("s1", group=group, members=ANOTHER))
        new = draft("s2", group=group, members=NEW, prospect=prospect(rates))
        again = conclude(store, new, policy=policy)
        if merit:
            assert again.stored.reason.startswith(f"version 1, {merit}")
            assert "has waited for approval since" in again.stored.reason
            assert "newest analysis: " in again.stored.reason
            assert states(store, group) == ["proposed"]
        else:
            assert states(store, group) == ["expired", "proposed"]


def test_approved_plan_is_not_replaced(store: PlanStore, draft: MakeDraft, approve: Step) -> None:
    """While an approved plan waits for publication, no new version is proposed."""
    approve("s1")
    later = conclude(store, draft("s2", members=ANOTHER))
    assert later.stored.reason.startswith(
        "version 1 is approved and has waited for publication since "
    )
    assert states(store) == ["approved"]


def test_waiting_rollback_is_not_replaced(
    store: PlanStore, draft: MakeDraft, publish: Step
) -> None:
    """No new plan replaces a waiting rollback, since the plan might undo the rollback."""
    publish("s1")
    record_decision(store, draft("s2", rolled_back_from=1))
    later = conclude(store, draft("s3", members=ANOTHER), policy=AT_NIGHT)
    assert later.stored.reason.startswith("version 2, a rollback, has waited for approval since ")
    assert states(store) == ["published", "proposed"]


def test_no_new_version_with_the_published_assignment(
    store: PlanStore, draft: MakeDraft, publish: Step
) -> None:
    """If the published assignment is still best but not followed, no new version is stored."""
    publish("s1")
    again = conclude(store, draft("s2", weights={"t0": np.array([9.0, 8.0, 7.0])}), policy=AT_NIGHT)
    assert again.stored.outcome == "no change"
    assert again.stored.reason == (
        "version 1, which gives the same assignment, is published, and 66.7 % of its partitions"
        " have their planned owner; newest analysis: the most loaded member gets lighter"
    )
    assert states(store) == ["published"]


@pytest.mark.parametrize("state", ["published", "proposed"])
def test_plan_of_an_older_snapshot_replaces_none(
    store: PlanStore, draft: MakeDraft, publish: Step, propose: Step, state: str
) -> None:
    """If two runs overlap, the plan that is made from the older snapshot is not stored."""
    {"published": publish, "proposed": propose}[state]("s2", snapshot_at=LATER)
    older = conclude(store, draft("s1", members=GROWN))
    assert older.stored.outcome == "no change"
    assert older.stored.reason.startswith(f"version 1 is {state}, and from a newer snapshot; ")
    assert states(store) == [state]


def moved(*rows: tuple[int, str, str]) -> pa.Table:
    """Return moves in topic t0; each row has the partition, its old and its new owner."""
    numbers, before, after = zip(*rows, strict=True)
    return pa.table(
        {
            "topic": ["t0"] * len(rows),
            "partition": pa.array(numbers, pa.int32()),
            "previous_member": before,
            "member": after,
        }
    )


#: The only move of plan NEW: orders-1 still owns partition 2. Plan ANOTHER gives this partition to
#: orders-2, so the group does not follow plan ANOTHER.
NOT_FOLLOWED = moved((2, "orders-1", "orders-2"))


def test_unfollowed_plan_is_replaced_only_by_a_better_one(
    store: PlanStore, draft: MakeDraft, publish: Step
) -> None:
    """An unfollowed plan is replaced only if a new plan is better by the policy's minimum."""
    policy = Policy(approval=Approval(automatic=True, min_improvement=0.5))
    for group, (rates, merit) in ARRIVALS.items():
        publish("s1", group=group, members=ANOTHER)
        new = draft("s2", group=group, members=NEW, prospect=prospect(rates), moves=NOT_FOLLOWED)
        again = conclude(store, new, policy=policy)
        if merit:
            assert again.stored.reason.startswith(f"version 1, {merit}")
            assert "is published, and 33.3 % of its partitions have" in again.stored.reason
            assert states(store, group) == ["published"]
        else:
            assert states(store, group)[0] == "published"
            assert len(states(store, group)) == 2


def test_plan_of_a_shadow_policy_is_never_approved(store: PlanStore, draft: MakeDraft) -> None:
    """The plan of a shadow policy is stored once, and replaced when shadow mode is turned off."""
    observing = AT_NIGHT.model_copy(update={"shadow": True})
    outcome = conclude(store, draft("s1", shadow=True), policy=observing)
    plan = outcome.stored.plan
    assert plan is not None
    assert outcome.approval.reason.startswith("shadow mode: ")
    with pytest.raises(PlanStateError, match="version 1 is in shadow mode: its policy"):
        store.approve("orders", 1, sha256=plan.sha256, reason="mine", actor="kim")
    conclude(store, draft("s2", shadow=True), policy=observing)
    assert states(store) == ["proposed"]
    conclude(store, draft("s3"), policy=AT_NIGHT)
    assert states(store) == ["expired", "approved"]


def test_repeated_step_approves_its_own_proposal(store: PlanStore, draft: MakeDraft) -> None:
    """If a run crashes before it approves its plan, the next run approves the same version."""
    record_decision(store, draft("s1"))
    conclude(store, draft("s1"), policy=AT_NIGHT)
    conclude(store, draft("s1"), policy=AT_NIGHT)
    assert states(store) == ["approved"]


def test_simultaneous_rejection_affects_one_group(
    store: PlanStore, draft: MakeDraft, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a person rejects one of seven plans before the policy approves them, six are approved."""
    approve_all = PlanStore.approve_all

    def rejected_meanwhile(self: PlanStore, *args: Any) -> dict[str, str]:
        self.reject("g3", 1, reason="not now")
        return approve_all(self, *args)

    monkeypatch.setattr(PlanStore, "approve_all", rejected_meanwhile)
    groups = [f"g{number}" for number in range(7)]
    decisions = [draft("s1", group=group) for group in groups]
    outcomes = carry_out(store, decisions, [AT_NIGHT], SNAPSHOT_AT)
    states = {group: store.get(group, 1).state for group in groups}
    assert states == {**dict.fromkeys(groups, "approved"), "g3": "rejected"}
    answers = {outcome.stored.group: outcome.approval for outcome in outcomes}
    assert not answers["g3"].approved
    assert "version 1 is rejected" in answers["g3"].reason


def test_decisions_of_a_fleet_are_stored(store: PlanStore, draft: MakeDraft) -> None:
    """The policy approves every plan, and results are in the order of the decisions.

    The same decisions are not stored a second time.
    """
    groups = [f"group-{number:04}" for number in range(14)]
    decisions = [
        draft("s1", group=group)
        if number % 2
        else Decision(group=group, snapshot_id="s1", snapshot_at=SNAPSHOT_AT, reason="good")
        for number, group in enumerate(groups)
    ]
    outcomes = carry_out(store, decisions, [AT_NIGHT], SNAPSHOT_AT)
    assert [outcome.stored.group for outcome in outcomes] == groups
    assert [outcome.stored.outcome for outcome in outcomes[-3:]] == ["plan", "no change", "plan"]
    approved = store.in_state("approved")
    assert [plan.group for plan in approved] == groups[1::2]
    assert [plan.version for plan in approved] == [1] * len(approved)
    again = carry_out(store, decisions, [AT_NIGHT], SNAPSHOT_AT)
    assert not any(outcome.stored.created for outcome in again)
