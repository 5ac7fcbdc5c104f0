"""Proposal: a draft becomes a version, approved at once where the policy allows.

Belongs here: what of a look at a group is stored and approved, and when a version that waits or is
published already makes a new one needless. Does not: the approval's rules (`approval`), a person's
approval (`PlanStore.approve`, SQL).
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Final

from fairlead.common.words import percent
from fairlead.domain.analysis.weighing import BETTER
from fairlead.domain.approval import ApprovalDecision, PlanFacts, decide_approval
from fairlead.domain.as_problem import Shares, planned
from fairlead.domain.basis import differences
from fairlead.domain.candidate_figures import improvement
from fairlead.domain.policy import Policy
from fairlead.domain.records import NoPlan, PlanDraft, StoredDecision, StoredPlan
from fairlead.errors import InvalidPlanError, TamperedPlanError
from fairlead.wire.document import PlanDocument

if TYPE_CHECKING:  # whoever stores nothing does not wait for the models' import
    from fairlead.store.hindsight import Rest
    from fairlead.store.plans import PlanStore

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
    """

    decision: PlanDraft | NoPlan
    policy: Policy


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


def carry_out(store: "PlanStore", looks: Sequence[Look], now: datetime) -> list[Outcome]:
    """Store decisions, and approve plans where the policies allow; `AT_ONCE` in a transaction.

    While a group still is what a version that waits was made for, that version is left alone, and
    the decision is 'no change', where it is approved, is a rollback, or what would take its place
    would wait as well without being better by what the policy asks: people need not read anew what
    they have read. Nor is there one of an older snapshot than theirs, nor while the published one
    says the same, or would do as well if the group followed it: a group that does not follow one
    version follows no other. Nothing moves in a group that rests since a plan made it worse.

    Parameters
    ----------
    store
        The plan store.
    looks
        At groups, at each once.
    now
        What the allowed hours are held against.
    """
    from fairlead.store.hindsight import rests  # noqa: PLC0415 - see above

    outcomes: list[Outcome] = []
    for first in range(0, len(looks), AT_ONCE):
        portion = looks[first : first + AT_ONCE]
        groups = [look.decision.group for look in portion if isinstance(look.decision, PlanDraft)]
        waiting = store.waiting(groups)
        published = {plan.group: plan for plan in store.in_state("published", groups=groups)}
        resting = rests(store.engine, groups) if groups else {}
        weighed = [
            _resting(look, resting[look.decision.group])
            if look.decision.group in resting and _moves(look.decision)
            else _weighed(
                look, waiting.get(look.decision.group), published.get(look.decision.group), now
            )
            for look in portion
        ]
        outcomes += propose(store, weighed)
    return outcomes


def _moves(decision: PlanDraft | NoPlan) -> bool:
    return isinstance(decision, PlanDraft) and decision.predicted["moved"] > 0


def _resting(look: Look, rest: "Rest") -> Weighed:
    assert isinstance(look.decision, PlanDraft)  # noqa: S101 - others move nothing
    return _declined(look.decision, str(rest)), _NOTHING


def _weighed(
    look: Look, waiting: StoredPlan | None, published: StoredPlan | None, now: datetime
) -> Weighed:
    """Return what is to be stored of a look beside the versions that there are, and the answer."""
    draft = look.decision
    if not isinstance(draft, PlanDraft):
        return draft, _NOTHING
    if waiting is not None and waiting.observed_only != draft.observed_only:
        waiting = None  # its policy was another one: the draft takes its place
    answer = weigh(draft, look.policy, draft.statuses, now)
    reason = _overtaken([before for before in (waiting, published) if before is not None], draft)
    if (
        not reason and waiting is not None and waiting.snapshot_id != draft.snapshot_id
    ):  # no repeated step
        reason = _left_alone(waiting, draft, look.policy, answer)
    if not reason and published is not None and published.snapshot_id != draft.snapshot_id:
        reason = _needless(published, draft, look.policy)
    return (_declined(draft, reason), _NOTHING) if reason else (draft, answer)


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
    return decide_approval(policy, facts, now)


def propose(store: "PlanStore", weighed: Sequence[Weighed]) -> list[Outcome]:
    """Store decisions, drafts as next versions, approved if that is the policy's answer.

    A version that is past approval already, because a step is repeated, keeps its state.
    """
    stored = store.record_decisions([decision for decision, _ in weighed])
    approved = [
        (kept.plan, answer.reason)
        for kept, (_, answer) in zip(stored, weighed, strict=True)
        if kept.plan is not None and answer.approved and kept.plan.state == "proposed"
    ]
    refused: dict[str, str] = {}
    if approved:
        plans, reasons = zip(*approved, strict=True)
        refused = store.approve_all(plans, reasons, APPROVER)
    return [
        Outcome(decision, kept, _unless(refused.get(decision.group), answer))
        for kept, (decision, answer) in zip(stored, weighed, strict=True)
    ]


def _unless(refusal: str | None, answer: ApprovalDecision) -> ApprovalDecision:
    """Return the policy's answer, or why the database did not take it."""
    return answer if refusal is None else ApprovalDecision(approved=False, reason=refusal)


def _overtaken(versions: Sequence[StoredPlan], draft: PlanDraft) -> str:
    """Say which version another run has made of a newer snapshot; empty: none."""
    for version in versions:
        if version.snapshot_at > draft.snapshot_at:
            return f"version {version.version} is {version.state}, and of a newer snapshot"
    return ""


def _left_alone(
    waiting: StoredPlan, draft: PlanDraft, policy: Policy, answer: ApprovalDecision
) -> str:
    """Say why a version that waits is left alone; empty: the draft replaces it."""
    plan = _document_that_fits(waiting, draft)
    if plan is None:
        return ""
    since = f"{waiting.created_at:%Y-%m-%d %H:%M} UTC"
    if waiting.state == "approved":
        return f"version {waiting.version} is approved and waits for publication since {since}"
    if waiting.rolled_back_from is not None:
        return f"version {waiting.version}, a rollback, waits for approval since {since}"
    merit = "" if answer.approved else _merit(plan, draft, policy)
    still = f"version {waiting.version}, {merit}, waits for approval since {since}; looked at again"
    return still if merit else ""


def _needless(published: StoredPlan, draft: PlanDraft, policy: Policy) -> str:
    """Say why nothing new is published while a group does not follow its plan; empty: it is.

    What the group follows wholly, the analysis has weighed: the draft is better than that.
    """
    plan = _document_that_fits(published, draft)
    if plan is None:
        return ""
    wanted = _owners(plan)
    followed = len(wanted.items() & _owners_before(draft).items())
    if followed == len(wanted):
        return ""
    said = "which says so already" if wanted == _owners(draft) else _merit(plan, draft, policy)
    if not said:
        return ""
    share = f"{percent(followed / len(wanted))} of its partitions are where it puts them"
    return f"version {published.version}, {said}, is published, and {share}"


def _document_that_fits(stored: StoredPlan, draft: PlanDraft) -> PlanDocument | None:
    """Return a version's document; None: it is not valid, or not for the group as it is."""
    try:
        plan = stored.verify()
    except (InvalidPlanError, TamperedPlanError):
        return None
    subscriptions = {name: share.topics for name, share in draft.members.items()}
    return None if differences(plan, subscriptions, draft.partition_counts) else plan


def _merit(plan: PlanDocument, draft: PlanDraft, policy: Policy) -> str:
    """Say why a draft is not worth its while beside a version that there is; empty: it is.

    The version does as long as it brings the group within the objective, as things are now. Else
    the draft must be better by what the policy asks of plans, and what any plan must be.
    """
    if _owners(plan) == _owners(draft):
        return "which gives the same"
    if draft.prospect is None:
        return ""
    old, new = (draft.prospect.forecast(shares).late_s for shares in (plan, draft))
    if old <= policy.objective.total_seconds():
        return "which still brings the group within its objective"
    asked = max(policy.approval.min_improvement, BETTER)
    gain = improvement({"late_s": old}, {"late_s": new}) or 0.0
    if gain <= 0:
        return "which leaves the group no further behind than a new one would"
    if gain < asked:
        return f"than which a new one would be less late by {gain:.1%}, not {asked:.0%}"
    return ""


def _owners(plan: Shares) -> dict[tuple[str, int], str]:
    """Return the member that a plan gives each partition to, where it gives it to one."""
    return {
        (topic, number): name
        for name, topics in planned(plan).items()
        for topic, numbers in topics.items()
        for number in numbers
    }


def _owners_before(draft: PlanDraft) -> dict[tuple[str, int], str]:
    """Return the member that owned each partition in the draft's snapshot, where there was one."""
    owners = _owners(draft)
    columns = (draft.moves[name].to_pylist() for name in ("topic", "partition", "previous_member"))
    for topic, number, previous in zip(*columns, strict=True):
        if previous is None:
            owners.pop((topic, number), None)
        else:
            owners[topic, number] = previous
    return owners


def _declined(draft: PlanDraft, reason: str) -> NoPlan:
    return NoPlan(
        group=draft.group,
        snapshot_id=draft.snapshot_id,
        snapshot_at=draft.snapshot_at,
        reason=f"{reason}; {draft.reason}",
        observed=draft.observed,
        candidates=draft.candidates,
        findings=draft.findings,
    )
