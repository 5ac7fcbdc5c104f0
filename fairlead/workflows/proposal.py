"""Proposal: store a draft as the next plan version, and approve it if the policy allows that.

Belongs here: storing decisions, approving drafts, and dropping drafts that are no better than a
waiting or published version. Belongs elsewhere: the rules of approval (`approval`), and a person's
approval (`PlanStore.approve`, SQL).
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Final

from fairlead.common.words import percent
from fairlead.domain.analysis.thresholds import BETTER
from fairlead.domain.approval import ApprovalDecision, PlanFacts, decide_approval
from fairlead.domain.as_problem import Shares, planned
from fairlead.domain.basis import differences
from fairlead.domain.candidate_figures import improvement
from fairlead.domain.policy import Policy, policy_for
from fairlead.domain.records import Decision, PlanDraft, StoredDecision, StoredPlan
from fairlead.errors import InvalidPlanError, TamperedPlanError
from fairlead.wire.document import PlanDocument

if TYPE_CHECKING:  # a dry run does not need the store, and its import is slow
    from fairlead.store.plans import PlanStore

APPROVER: Final = "policy"
_NOTHING: Final = ApprovalDecision(approved=False, reason="")

#: A decision to store, and the policy's decision on approval.
Weighed = tuple[Decision, ApprovalDecision]


@dataclass(frozen=True)
class Outcome:
    """A decision on a group, as stored, and whether its plan was approved.

    Parameters
    ----------
    decision
        The decision before it was stored.
    stored
        The row and the plan in the database.
    approval
        The policy's decision on approval; if there is no plan, the reason is "".
    """

    decision: Decision
    stored: StoredDecision
    approval: ApprovalDecision


def carry_out(
    store: "PlanStore",
    decisions: Sequence[Decision],
    policies: Sequence[Policy],
    now: datetime,
) -> list[Outcome]:
    """Store decisions in one transaction, and approve drafts if policies allow it.

    In these cases, a draft is dropped, the decision is stored as 'no change', and the group keeps
    its present version:

    - A version that still fits the group waits for publication, or is a rollback that waits for
      approval.
    - A version that still fits the group and is good enough waits for approval, and the draft would
      wait for approval, too. People then need not review nearly the same plan again.
    - The present version was made from a newer snapshot than the draft.
    - The group does not follow its published version completely, and this version is good enough.
      The group would probably not follow a new version either.
    - The group is in back-off because a plan made it worse, and the draft moves partitions.

    A version is good enough if it has the draft's assignment, brings the group within its
    objective, or is not much worse than the draft.

    Parameters
    ----------
    store
        The plan store.
    decisions
        Decisions on snapshots, at most one per group.
    policies
        The policies of the settings.
    now
        The time that is compared with the policies' allowed hours.
    """
    from fairlead.store.regressions import back_offs  # noqa: PLC0415 - see above

    groups = [new.group for new in decisions if isinstance(new, PlanDraft)]
    waiting = store.waiting(groups)
    published = {plan.group: plan for plan in store.in_state("published", groups=groups)}
    resting = back_offs(store.engine, groups) if groups else {}
    weighed: list[Weighed] = []
    for new in decisions:
        back_off = resting.get(new.group)
        if not isinstance(new, PlanDraft):
            weighed.append((new, _NOTHING))
        elif back_off is not None and new.predicted["moved"] > 0:
            weighed.append((_declined(new, str(back_off)), _NOTHING))
        else:
            policy = policy_for(new.group, policies)
            present = waiting.get(new.group), published.get(new.group)
            weighed.append(_weighed(new, policy, *present, now))
    return propose(store, weighed)


def _weighed(
    draft: PlanDraft,
    policy: Policy,
    waiting: StoredPlan | None,
    published: StoredPlan | None,
    now: datetime,
) -> Weighed:
    """Return the decision to store, and the policy's answer.

    `waiting` and `published` are the group's present versions.
    """
    if waiting is not None and waiting.shadow != draft.shadow:
        waiting = None  # the policy's shadow mode has changed: replace the version
    answer = weigh(draft, policy, draft.statuses, now)
    reason = _overtaken([before for before in (waiting, published) if before is not None], draft)
    if (
        not reason and waiting is not None and waiting.snapshot_id != draft.snapshot_id
    ):  # if both have the same snapshot, an earlier attempt of this run stored `waiting`
        reason = _why_kept(waiting, draft, policy, answer)
    if not reason and published is not None and published.snapshot_id != draft.snapshot_id:
        reason = _needless(published, draft, policy)
    return (_declined(draft, reason), _NOTHING) if reason else (draft, answer)


def weigh(
    draft: PlanDraft, policy: Policy, statuses: Collection[str], now: datetime
) -> ApprovalDecision:
    """Return the policy's decision on the approval of a draft."""
    facts = PlanFacts(
        moved=draft.predicted["moved"],
        placed=draft.predicted["placed"],
        improvement=improvement(draft.observed or {}, draft.predicted),
        statuses=statuses,
    )
    return decide_approval(policy, facts, now)


def propose(store: "PlanStore", weighed: Sequence[Weighed]) -> list[Outcome]:
    """Store decisions. Drafts become the next versions, and are approved if the policy allows it.

    If a run repeats the step, versions that it has stored and approved before stay approved.
    """
    stored = store.record_decisions([decision for decision, _ in weighed])
    approved = [
        (stored_one.plan, answer.reason)
        for stored_one, (_, answer) in zip(stored, weighed, strict=True)
        if stored_one.plan is not None and answer.approved and stored_one.plan.state == "proposed"
    ]
    refused: dict[str, str] = {}
    if approved:
        plans, reasons = zip(*approved, strict=True)
        refused = store.approve_all(plans, reasons, APPROVER)
    answers = {
        group: ApprovalDecision(approved=False, reason=why) for group, why in refused.items()
    }
    return [
        Outcome(decision, stored_one, answers.get(decision.group, answer))
        for stored_one, (decision, answer) in zip(stored, weighed, strict=True)
    ]


def _overtaken(versions: Sequence[StoredPlan], draft: PlanDraft) -> str:
    """Name a version that was made from a newer snapshot than the draft; "" if there is none."""
    for version in versions:
        if version.snapshot_at > draft.snapshot_at:
            return f"version {version.version} is {version.state}, and from a newer snapshot"
    return ""


def _why_kept(
    waiting: StoredPlan, draft: PlanDraft, policy: Policy, answer: ApprovalDecision
) -> str:
    """Return why a waiting version is kept; "" if the draft replaces it."""
    plan = _document_that_fits(waiting, draft)
    if plan is None:
        return ""
    since = f"{waiting.created_at:%Y-%m-%d %H:%M} UTC"
    if waiting.state == "approved":
        return f"version {waiting.version} is approved and has waited for publication since {since}"
    if waiting.rolled_back_from is not None:
        return f"version {waiting.version}, a rollback, has waited for approval since {since}"
    merit = "" if answer.approved else _merit(plan, draft, policy)
    still = f"version {waiting.version}, {merit}, has waited for approval since {since}"
    return still if merit else ""


def _needless(published: StoredPlan, draft: PlanDraft, policy: Policy) -> str:
    """Return the reason to drop the draft, or "" to keep it.

    A draft can only be dropped if the group does not follow its published plan completely. If the
    group does, the analysis has already compared the draft with this plan.
    """
    plan = _document_that_fits(published, draft)
    if plan is None:
        return ""
    wanted = _owners(plan)
    followed = len(wanted.items() & _owners_before(draft).items())
    if followed == len(wanted):
        return ""
    same = "which gives the same assignment"
    merit = same if wanted == _owners(draft) else _merit(plan, draft, policy)
    if not merit:
        return ""
    share = f"{percent(followed / len(wanted))} of its partitions have their planned owner"
    return f"version {published.version}, {merit}, is published, and {share}"


def _document_that_fits(stored: StoredPlan, draft: PlanDraft) -> PlanDocument | None:
    """Return a version's document; None if it is invalid or does not fit the group."""
    try:
        plan = stored.verify()
    except (InvalidPlanError, TamperedPlanError):
        return None
    subscriptions = {name: share.topics for name, share in draft.members.items()}
    return None if differences(plan, subscriptions, draft.partition_counts) else plan


def _merit(plan: PlanDocument, draft: PlanDraft, policy: Policy) -> str:
    """Return why an existing version makes the draft superfluous; "" if the draft is better.

    The draft is superfluous if it has the same assignment as the version, or if the forecast lag
    with the version is within the policy's objective. Otherwise the draft is better only if it
    reduces the forecast lag by at least `BETTER` and by the policy's minimum improvement.
    """
    if _owners(plan) == _owners(draft):
        return "which gives the same assignment"
    if draft.prospect is None:
        return ""
    old, new = (draft.prospect.forecast(shares).time_lag_s for shares in (plan, draft))
    if old <= policy.objective.total_seconds():
        return "which still brings the group within its objective"
    required = max(policy.approval.min_improvement, BETTER)
    gain = improvement({"forecast_time_lag_s": old}, {"forecast_time_lag_s": new}) or 0.0
    if gain <= 0:
        return "which is at least as good as a new version"
    if gain < required:
        return f"which a new version would improve by only {gain:.1%}, not {required:.0%}"
    return ""


def _owners(plan: Shares) -> dict[tuple[str, int], str]:
    """Map partitions to their owners in a plan; partitions without an owner are missing."""
    return {
        (topic, number): name
        for name, topics in planned(plan).items()
        for topic, numbers in topics.items()
        for number in numbers
    }


def _owners_before(draft: PlanDraft) -> dict[tuple[str, int], str]:
    """Map partitions to their owners in the draft's snapshot, by undoing the draft's moves."""
    owners = _owners(draft)
    columns = (draft.moves[name].to_pylist() for name in ("topic", "partition", "previous_member"))
    for topic, number, previous in zip(*columns, strict=True):
        if previous is None:
            owners.pop((topic, number), None)
        else:
            owners[topic, number] = previous
    return owners


def _declined(draft: PlanDraft, reason: str) -> Decision:
    return Decision(
        group=draft.group,
        snapshot_id=draft.snapshot_id,
        snapshot_at=draft.snapshot_at,
        reason=f"{reason}; newest analysis: {draft.reason}",
        observed=draft.observed,
        candidates=draft.candidates,
        findings=draft.findings,
    )
