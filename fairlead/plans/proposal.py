"""Proposal: a draft becomes a version, approved at once where the policy allows.

Belongs here: what of a look at a group is stored and approved, and when a version that waits is
left waiting instead. Does not: the approval's rules (`approval`), a person's approval
(`PlanStore.approve`, SQL).
"""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from fairlead.errors import InvalidPlanError, TamperedPlanError
from fairlead.plans.approval import ApprovalDecision, PlanFacts, decide
from fairlead.plans.as_problem import planned
from fairlead.plans.basis import differences
from fairlead.plans.choice import improvement
from fairlead.policy import Policy
from fairlead.store.plans import PlanStore
from fairlead.store.records import NoPlan, PlanDraft, StoredDecision, StoredPlan

APPROVER: Final = "policy"
_NOTHING: Final = ApprovalDecision(approved=False, reason="")


@dataclass(frozen=True)
class Outcome:
    """What became of a look at a group.

    Parameters
    ----------
    decision
        What was to be stored.
    stored
        What is.
    approval
        The policy's answer; without a reason where there is no plan.
    """

    decision: PlanDraft | NoPlan
    stored: StoredDecision
    approval: ApprovalDecision


def carry_out(
    store: PlanStore,
    decision: PlanDraft | NoPlan,
    *,
    policy: Policy,
    statuses: Collection[str],
    now: datetime,
) -> Outcome:
    """Store a decision, and approve its plan where the policy allows.

    While the group still is what a version that waits was made for, that version is left alone,
    and the decision is 'no change', where it is approved, is a rollback, or gives the very same
    that would wait as well: people need not read anew what they have read.

    Parameters
    ----------
    store
        The plan store.
    decision
        On a snapshot.
    policy
        The group's.
    statuses
        Those that the group's partitions have in the snapshot.
    now
        What the allowed hours are held against.
    """
    if not isinstance(decision, PlanDraft):
        return Outcome(decision, store.record_decision(decision), _NOTHING)
    answer = weigh(decision, policy, statuses, now)
    waiting = store.waiting(decision.group)
    if waiting is not None and waiting.snapshot_id != decision.snapshot_id:  # no repeated step
        reason = _left_alone(waiting, decision, answer)
        if reason:
            declined = _declined(decision, reason)
            return Outcome(declined, store.record_decision(declined), _NOTHING)
    return propose(store, decision, answer)


def weigh(
    draft: PlanDraft, policy: Policy, statuses: Collection[str], now: datetime
) -> ApprovalDecision:
    """Return what the policy says of publishing a draft unasked."""
    facts = PlanFacts(
        moved=draft.predicted["moved"],
        placed=draft.predicted["placed"],
        improvement=improvement(draft.observed or {}, draft.predicted),
        statuses=statuses,
    )
    return decide(policy, facts, now)


def propose(store: PlanStore, draft: PlanDraft, answer: ApprovalDecision) -> Outcome:
    """Store a draft as the next version, approved if that is the policy's answer.

    A version that is past approval already, because a step is repeated, keeps its state.
    """
    stored = store.record_decision(draft)
    plan = stored.plan
    if plan is not None and answer.approved and plan.state == "proposed":
        store.approve(
            plan.group, plan.version, sha256=plan.sha256, actor=APPROVER, reason=answer.reason
        )
    return Outcome(draft, stored, answer)


def _left_alone(waiting: StoredPlan, draft: PlanDraft, answer: ApprovalDecision) -> str:
    """Say why a version that waits is left alone; empty: the draft replaces it."""
    try:
        plan = waiting.verify()
    except (InvalidPlanError, TamperedPlanError):
        return ""  # it could not be published either
    subscriptions = {name: share.topics for name, share in draft.members.items()}
    if differences(plan, subscriptions, draft.partition_counts):
        return ""
    if waiting.state == "approved":
        return f"version {waiting.version} is approved and waits for publication"
    if waiting.rolled_back_from is not None:
        return f"version {waiting.version}, a rollback, waits for approval"
    if not answer.approved and planned(plan) == planned(draft):
        return f"version {waiting.version}, which gives the same, waits for approval"
    return ""


def _declined(draft: PlanDraft, reason: str) -> NoPlan:
    return NoPlan(
        group=draft.group,
        snapshot_id=draft.snapshot_id,
        snapshot_at=draft.snapshot_at,
        reason=f"{reason}; {draft.reason}",
        observed=draft.observed,
        candidates=draft.candidates,
    )
