"""Proposal: a draft becomes a version, approved at once where the policy allows.

Belongs here: what of a look at a group is stored and approved, and when a version that waits is
left waiting instead. Does not: the approval's rules (`approval`), a person's approval
(`PlanStore.approve`, SQL).
"""

from collections.abc import Collection, Sequence
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
#: Decisions in a transaction: few enough that nobody waits long for a group's lock.
AT_ONCE: Final = 500
_NOTHING: Final = ApprovalDecision(approved=False, reason="")

#: What is to be stored, and the policy's answer to it.
Weighed = tuple[PlanDraft | NoPlan, ApprovalDecision]


@dataclass(frozen=True)
class Look:
    """What a look at a group has come to, before anything is stored.

    Parameters
    ----------
    decision
        On a snapshot.
    policy
        The group's.
    statuses
        Those that the group's partitions have in the snapshot.
    """

    decision: PlanDraft | NoPlan
    policy: Policy
    statuses: Collection[str]


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


def carry_out(store: PlanStore, looks: Sequence[Look], now: datetime) -> list[Outcome]:
    """Store decisions, and approve plans where the policies allow; `AT_ONCE` in a transaction.

    While a group still is what a version that waits was made for, that version is left alone, and
    the decision is 'no change', where it is approved, is a rollback, or gives the very same that
    would wait as well: people need not read anew what they have read.

    Parameters
    ----------
    store
        The plan store.
    looks
        At groups, at each once.
    now
        What the allowed hours are held against.
    """
    outcomes: list[Outcome] = []
    for first in range(0, len(looks), AT_ONCE):
        some = looks[first : first + AT_ONCE]
        drafts = [look.decision for look in some if isinstance(look.decision, PlanDraft)]
        waiting = store.waiting(draft.group for draft in drafts)
        weighed = [_weighed(look, waiting.get(look.decision.group), now) for look in some]
        outcomes += propose(store, weighed)
    return outcomes


def _weighed(look: Look, waiting: StoredPlan | None, now: datetime) -> Weighed:
    """Return what is to be stored of a look beside the version that waits, and the answer."""
    draft = look.decision
    if not isinstance(draft, PlanDraft):
        return draft, _NOTHING
    answer = weigh(draft, look.policy, look.statuses, now)
    if waiting is not None and waiting.snapshot_id != draft.snapshot_id:  # no repeated step
        reason = _left_alone(waiting, draft, answer)
        if reason:
            return _declined(draft, reason), _NOTHING
    return draft, answer


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


def propose(store: PlanStore, weighed: Sequence[Weighed]) -> list[Outcome]:
    """Store decisions, drafts as next versions, approved if that is the policy's answer.

    A version that is past approval already, because a step is repeated, keeps its state.
    """
    stored = store.record_decisions([decision for decision, _ in weighed])
    approved = [
        (one.plan, answer.reason)
        for one, (_, answer) in zip(stored, weighed, strict=True)
        if one.plan is not None and answer.approved and one.plan.state == "proposed"
    ]
    if approved:
        plans, reasons = zip(*approved, strict=True)
        store.approve_all(plans, reasons, APPROVER)
    return [
        Outcome(decision, one, answer)
        for one, (decision, answer) in zip(stored, weighed, strict=True)
    ]


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
