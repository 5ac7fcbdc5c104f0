"""Automatic approval: what the policy allows is approved in its name.

Belongs here: carrying the policy's answer out. Does not: the rules (`approval`), nor a person's
approval (`PlanStore.approve`, SQL).
"""

from collections.abc import Collection
from datetime import datetime
from typing import Final

from fairlead.plans.approval import ApprovalDecision, PlanFacts, decide
from fairlead.plans.choice import improvement
from fairlead.policy import Policy
from fairlead.store.plans import PlanStore
from fairlead.store.records import PlanDraft, StoredPlan

APPROVER: Final = "policy"


def approve_by_policy(
    store: PlanStore,
    draft: PlanDraft,
    plan: StoredPlan,
    *,
    policy: Policy,
    statuses: Collection[str],
    now: datetime,
) -> ApprovalDecision:
    """Approve a proposed plan if its policy allows.

    Parameters
    ----------
    store
        The plan store.
    draft, plan
        What was proposed, and as what version.
    policy
        The group's.
    statuses
        Those that the group's partitions have.
    now
        What the allowed hours are held against.

    Returns
    -------
    The policy's answer. A plan that is past approval, because a step is repeated, keeps its state.
    """
    if plan.state != "proposed":
        return ApprovalDecision(approved=True, reason=f"{plan.state} before")
    facts = PlanFacts(
        moved=draft.predicted["moved"],
        placed=draft.predicted["placed"],
        improvement=improvement(draft.observed or {}, draft.predicted),
        statuses=statuses,
    )
    answer = decide(policy, facts, now)
    if answer.approved:
        store.approve(
            plan.group, plan.version, sha256=plan.sha256, actor=APPROVER, reason=answer.reason
        )
    return answer
