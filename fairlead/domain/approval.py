"""Approval of plans by the policy of their group, with the reasons as text.

Belongs here: checking a plan against the policy's approval rules. Belongs elsewhere: storing the
decision (`fairlead.store`), and a person's approval.
"""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from fairlead.common.hours import within
from fairlead.domain.policy import Approval, Policy


@dataclass(frozen=True)
class PlanFacts:
    """The facts of a plan that approval rules use.

    Parameters
    ----------
    moved
        Number of partitions that the plan takes from a present owner.
    placed
        Number of partitions that have no owner and get an owner from the plan.
    improvement
        Share by which the plan reduces the forecast lag; negative if the plan increases it; None if
        it is not known.
    statuses
        Statuses of the group's partitions in the plan's snapshot.
    """

    moved: int
    placed: int
    improvement: float | None
    statuses: Collection[str]


@dataclass(frozen=True)
class ApprovalDecision:
    """Whether the policy approves a plan, and why or why not."""

    approved: bool
    reason: str


def decide_approval(policy: Policy, facts: PlanFacts, now: datetime) -> ApprovalDecision:
    """Decide on a plan by the approval rules of its policy.

    `min_improvement` does not apply to a plan that moves no partition, or that gives an owner to a
    partition without one. With `four_eyes` or in shadow mode, the policy approves no plan.

    Parameters
    ----------
    now
        The present time; time-zone-aware. Outside the policy's `hours`, a person decides.

    Examples
    --------
    >>> from datetime import UTC
    >>> noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
    >>> facts = PlanFacts(moved=12, placed=0, improvement=0.4, statuses={"OK"})
    >>> policy = Policy(approval=Approval(automatic=True, max_moves=10))
    >>> decide_approval(policy, facts, noon).reason
    'waits for a person: 12 partitions move, the policy allows 10'
    """
    if policy.shadow:
        reason = "shadow mode: plans cannot be approved"
    elif policy.four_eyes:
        who = "two people" if policy.four_eyes == "proxy" else "a person other than the proposer"
        reason = f"waits for {who}: the policy requires four eyes"
    elif not policy.approval.automatic:
        reason = "waits for a person: the policy approves nothing automatically"
    elif objections := _objections(policy.approval, facts, now):
        reason = f"waits for a person: {'; '.join(objections)}"
    else:
        return ApprovalDecision(approved=True, reason=f"approved by policy: {_merits(facts)}")
    return ApprovalDecision(approved=False, reason=reason)


def requirements(policy: Policy) -> list[str]:
    """Return the conditions for the approval of a plan, as sentences.

    Examples
    --------
    >>> requirements(Policy(four_eyes="database"))
    ['a person approves, as a database user who is not a planner and did not propose it']
    """
    if policy.shadow:
        return ["plans cannot be approved in shadow mode"]
    if policy.four_eyes:
        who = "a person approves, as a database user who is not a planner and did not propose it"
        pages = "; or two people on web pages, whom the proxy names"
        return [who + pages if policy.four_eyes == "proxy" else who]
    if not policy.approval.automatic:
        return ["a person approves"]
    rules = policy.approval
    conditions = []
    if rules.max_moves is not None:
        conditions.append(f"at most {_moves(rules.max_moves)}")
    if rules.min_improvement:
        fall = _percent(rules.min_improvement)
        conditions.append(
            f"the forecast lag falls by at least {fall}, unless partitions lack an owner"
        )
    if rules.forbidden_statuses:
        conditions.append(f"no partition is in {' or '.join(rules.forbidden_statuses)}")
    if rules.hours:
        conditions.append(f"the time is within {_hours(rules)}")
    if not conditions:
        return ["nothing: the policy approves every plan automatically"]
    return [
        "a person approves, or the policy if all these conditions are met",
        *conditions,
    ]


def _objections(approval: Approval, facts: PlanFacts, now: datetime) -> list[str]:
    objections = []
    if approval.max_moves is not None and facts.moved > approval.max_moves:
        objections.append(f"{_moves(facts.moved)}, the policy allows {approval.max_moves:,}")
    if facts.moved and not facts.placed and not _improves(approval, facts):
        objections.append(
            f"{_change(facts.improvement)}, the policy requires at least "
            f"{_percent(approval.min_improvement)}"
        )
    risky = sorted(set(facts.statuses) & set(approval.forbidden_statuses))
    if risky:
        objections.append(f"partitions are in {' and '.join(risky)}")
    if approval.hours and not within(approval.hours, approval.time_zone, now):
        objections.append(f"the policy approves only within {_hours(approval)}")
    return objections


def _improves(approval: Approval, facts: PlanFacts) -> bool:
    if facts.improvement is None:
        return approval.min_improvement == 0
    return facts.improvement >= approval.min_improvement


def _hours(approval: Approval) -> str:
    return f"{' or '.join(approval.hours)}, {approval.time_zone}"


def _merits(facts: PlanFacts) -> str:
    placed = f", {facts.placed:,} without an owner get one" if facts.placed else ""
    return f"{_moves(facts.moved)}{placed}, {_change(facts.improvement)}"


def _moves(count: int) -> str:
    return f"{count:,} {'partition moves' if count == 1 else 'partitions move'}"


def _change(improvement: float | None) -> str:
    if improvement is None:
        return "the forecast lag is not known"
    verb = "falls" if improvement >= 0 else "rises"
    return f"the forecast lag {verb} by {_percent(abs(improvement))}"


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"
