"""What `assignment_plan` shows: every decision, and one plan with its review and its approval."""

from collections.abc import Mapping, Sequence
from datetime import UTC
from operator import attrgetter
from typing import Any, Final

from assets.presentation import ROWS, details, in_order, link, others, table
from fairlead.domain.figures import FIGURES
from fairlead.domain.reconciliation import WHAT_FOLLOWS
from fairlead.domain.records import PlanDraft, StoredPlan
from fairlead.domain.work_text import work_of_group
from fairlead.settings import WebSettings
from fairlead.surfaces import ways
from fairlead.workflows.proposal import Outcome

_LAUNCH: Final = "Open the launchpad, type why, launch"
_WAITS: Final = "waits for a person"
#: What a state means for what happens next.
_FOLLOWING: Final = {
    "approved": WHAT_FOLLOWS,
    "published": "consumers follow it: plan_adoption shows how far; the job withdraw withdraws it",
    "rejected": "consumers keep what they have; the next planning run decides again",
    "expired": "nobody decided in time; the next planning run decides again",
    "stale": "the group was no longer what it was made for; the next planning run decides again",
    "superseded": "a newer version has taken its place",
    "withdrawn": "consumers are back at their fallback",
}


def plan_in_detail(
    outcomes: Sequence[Outcome], waiting: Mapping[str, StoredPlan], groups: Sequence[str]
) -> StoredPlan | None:
    """Return the plan to show in detail: the first that waits for a person, else the first made."""
    made = {outcome.decision.group: outcome.stored.plan for outcome in outcomes}
    plans = [plan for group in groups if (plan := waiting.get(group) or made[group]) is not None]
    return next((plan for plan in plans if plan.state == "proposed"), next(iter(plans), None))


def worst_first(outcomes: Sequence[Outcome]) -> list[str]:
    """Return the groups: failures, what waits for a person, then by how late, then by lag."""
    ordered = sorted(outcomes, key=_attention)
    return list(dict.fromkeys(outcome.decision.group for outcome in ordered))


def describe(
    outcomes: Sequence[Outcome], groups: Sequence[str], plan: StoredPlan | None, web: WebSettings
) -> dict[str, Any]:
    """Show the decisions on some groups.

    Parameters
    ----------
    outcomes
        The decisions of the run.
    groups
        The groups to show, in the order of `worst_first`.
    plan
        A plan of one of them to show in detail, from `plan_in_detail`.
    web
        The address of the pages.
    """
    mine = in_order(outcomes, groups, attrgetter("decision.group"))
    in_detail = groups[:1] if plan is None else [plan.group]
    metadata: dict[str, Any] = {}
    for outcome in in_order(mine, in_detail, attrgetter("decision.group")):
        metadata |= _decision(outcome)
        metadata |= {} if plan is None else _plan(plan, outcome.approval.reason, web)
    predicted = [found for outcome in mine if (found := _predicted(outcome))]
    return metadata | {
        "by group": table([_row(outcome) for outcome in mine[:ROWS]]),
        "groups": len(groups),
        "plans": sum(outcome.stored.plan is not None for outcome in mine),
        "no change": sum(outcome.stored.outcome == "no change" for outcome in mine),
        "failed": sum(outcome.stored.outcome == "failed" for outcome in mine),
        "partitions moved": sum(metrics["moved"] for metrics in predicted),
        "forecast lag (s)": round(max(map(_late_s, mine), default=0.0), 1),
        **others(len(mine)),
    }


def _decision(outcome: Outcome) -> dict[str, str]:
    """Return the decision on a group, its diagnosis, and how many consumers it needs."""
    stored, found = outcome.stored, outcome.decision.findings
    what = f"version {stored.plan.version}" if stored.plan else stored.outcome
    decision = {"decision": f"{stored.group}: {what}: {stored.reason}"}
    if found is None:
        return decision
    return decision | {
        "diagnosis": found.diagnosis,
        "evidence": found.evidence,
        "how many consumers": found.consumers_why,
        **work_of_group(found.reported),
    }


def _plan(plan: StoredPlan, policy: str, web: WebSettings) -> dict[str, Any]:
    """Return the state of a plan, its review, and how to approve or reject it."""
    since = f"since {plan.created_at.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
    review = f"Open the review of version {plan.version}"
    return {
        "policy": policy or f"version {plan.version} is {plan.state} {since}",
        "state": plan.state,
        "review": details(review, web, plan.group, plan.version),
        **_ways_to_decide(plan),
        "version": plan.version,
    }


def _row(outcome: Outcome) -> dict[str, Any]:
    decision, stored, predicted = outcome.decision, outcome.stored, _predicted(outcome)
    forecast = [
        FIGURES["late_s"].text(metrics["late_s"])
        for metrics in (decision.observed, predicted)
        if metrics and metrics.get("late_s") is not None
    ]
    return {
        "group": decision.group,
        "outcome": f"version {stored.plan.version}" if stored.plan else stored.outcome,
        "diagnosis": decision.findings.diagnosis if decision.findings else "",
        FIGURES["late_s"].label: " \N{RIGHTWARDS ARROW} ".join(forecast),
        "moved": predicted["moved"] if predicted else 0,
        "reason": stored.reason,
        "approval": outcome.approval.reason,
    }


def _predicted(outcome: Outcome) -> Mapping[str, Any] | None:
    decision = outcome.decision
    return decision.predicted if isinstance(decision, PlanDraft) else None


def _late_s(outcome: Outcome) -> float:
    return float((outcome.decision.observed or {}).get("late_s") or 0)


def _ways_to_decide(plan: StoredPlan) -> dict[str, Any]:
    """Return how a person approves or rejects a plan; empty if it is decided already."""
    if plan.state != "proposed":
        return {}
    if plan.observed_only:
        return {"approval": "none: the policy of the group observes, and publishes nothing"}
    approve, reject = ways.approve(plan, ""), ways.reject(plan, "")
    by_page = ", or by two people on its review's page" if plan.four_eyes == "proxy" else ""
    return {
        "to approve it": link(_LAUNCH, approve.launchpad)
        if approve.launchpad
        else f"in SQL, by a database user who is no planner{by_page}: it takes four eyes",
        "to reject it": link(_LAUNCH, str(reject.launchpad)),
        "to approve it in SQL": approve.statement,
    }


def _attention(outcome: Outcome) -> tuple[bool, bool, float, float, str]:
    observed = outcome.decision.observed
    heaviest = float(observed["lag_max"] or 0) if observed else 0.0
    waits = _WAITS in (outcome.approval.reason or outcome.stored.reason)
    failed = outcome.stored.outcome == "failed"
    return not failed, not waits, -_late_s(outcome), -heaviest, outcome.decision.group


def describe_step(step: Mapping[str, Any]) -> dict[str, Any]:
    """Return metadata about a step in the life of a plan after its run.

    The keys are those of `describe` whose values are out of date: the UI shows each key's newest.

    Parameters
    ----------
    step
        A row of `fairlead.store.history_queries.read_steps`.
    """
    version, state = step["version"], step["state"]
    at = f"{step['at'].astimezone(UTC):%Y-%m-%d %H:%M} UTC"
    done = f"version {version} is {state} already"
    return {
        "state": state,
        "since then": f"{step['group']}: version {version} is {state} since {at}, by "
        f"{step['actor']}: {step['reason']}",
        "policy": _FOLLOWING.get(state, "nothing waits for a person"),
        "to approve it": done,
        "to reject it": done,
        "to approve it in SQL": done,
    }
