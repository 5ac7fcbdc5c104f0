"""Metadata of `assignment_plan`: every decision, and the moves and approval of one plan."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from operator import attrgetter
from typing import Any, Final

import dagster as dg
from sqlalchemy import Engine

from assets.presentation import ROWS, details, in_order, link, others, table
from fairlead.common.words import catch_up_time
from fairlead.domain.figures import FIGURES, imbalance
from fairlead.domain.reconciliation import WHAT_FOLLOWS
from fairlead.domain.records import PlanDraft, StoredPlan
from fairlead.domain.work_text import work_of_group
from fairlead.errors import InvalidPlanError, TamperedPlanError
from fairlead.settings import WebSettings
from fairlead.store.history_queries import read_plan
from fairlead.store.plans import PlanStore
from fairlead.surfaces import offers
from fairlead.workflows.proposal import Outcome

Metrics = Mapping[str, Any]

#: Maximum number of moves shown; the review of the plan has all of them.
MOVES: Final = 25
_LAUNCH: Final = "Open the launchpad, enter a reason, launch the run"
_WAITS: Final = "waits for a person"
_LATE: Final = FIGURES["forecast_time_lag_s"].label
#: Figures that are compared before and after the plan.
_COMPARED: Final = (
    *("forecast_time_lag_s", "utilisation", "lag_max", "imbalance", "topic_spread"),
    *("rack_gb_per_day", "rack_cost_per_day"),
)
#: Maps the state of a plan to a text about what happens next.
FOLLOWING: Final = {
    "approved": WHAT_FOLLOWS,
    "published": "consumers follow it: see plan_adoption; the job withdraw withdraws it",
    "rejected": "consumers keep their partitions; the next planning run decides again",
    "expired": "it was not published; the next planning run decides again",
    "stale": "the group had changed since it was made; the next planning run decides again",
    "superseded": "a newer version has replaced it",
    "withdrawn": "consumers use their fallback again",
}


@dataclass(frozen=True, eq=False)
class Detail:
    """The plan shown in detail: a new plan, or an earlier plan that still waits for approval.

    Parameters
    ----------
    plan
        The stored plan, whose bytes agree with its hash.
    moves
        The plan's moves, those of partitions with the most lag first.
    predicted
        The plan's metrics.
    policy
        The policy's decision on the plan's approval; "" if an earlier run made the plan.
    """

    plan: StoredPlan
    moves: Sequence[Mapping[str, Any]]
    predicted: Metrics
    policy: str


def detail_of(
    engine: Engine,
    outcomes: Sequence[Outcome],
    waiting: Mapping[str, StoredPlan],
    *,
    groups: Sequence[str],
    warn: Callable[[str], None],
) -> Detail | None:
    """Return the first plan that waits for approval or, if none waits, the first plan.

    Return None if there is no plan, or if the plan's stored bytes do not agree with its hash.
    """
    by_group = {outcome.decision.group: outcome for outcome in outcomes}
    plans = [waiting.get(group) or by_group[group].stored.plan for group in groups]
    known_plans = [plan for plan in plans if plan is not None]
    if not known_plans:
        return None
    plan = next((plan for plan in known_plans if plan.state == "proposed"), known_plans[0])
    try:
        plan.verify()
    except (InvalidPlanError, TamperedPlanError) as error:
        warn(f"Group {plan.group}: {error}")  # not raised: an asset check reports it as a failure
        return None
    return Detail(
        plan=plan,
        moves=read_plan(engine, plan.group, plan.version)["moves"],
        predicted=PlanStore(engine).predicted([plan])[plan.group, plan.version],
        policy=by_group[plan.group].approval.reason,
    )


def worst_first(outcomes: Sequence[Outcome]) -> list[str]:
    """Return the groups, sorted by how much they need attention.

    First come groups without a decision because of an error, then groups whose plan waits for
    approval, then all others. In each of these parts, groups with the highest forecast lag come
    first; if it is equal, those with the highest lag.
    """
    ordered = sorted(outcomes, key=_attention)
    return list(dict.fromkeys(outcome.decision.group for outcome in ordered))


def describe(
    outcomes: Sequence[Outcome], groups: Sequence[str], detail: Detail | None, web: WebSettings
) -> dict[str, Any]:
    """Return metadata about the decisions on some groups.

    Parameters
    ----------
    outcomes
        All outcomes of the run.
    groups
        The groups to show, in the order of `worst_first`.
    detail
        The plan to show in detail, made for one of these groups; None: there is none.
    web
        The address of the pages.
    """
    selected = in_order(outcomes, groups, attrgetter("decision.group"))
    in_detail = groups[:1] if detail is None else [detail.plan.group]
    metadata: dict[str, Any] = {}
    for outcome in in_order(selected, in_detail, attrgetter("decision.group")):
        metadata |= _decision(outcome)
        metadata["figures"] = _before_and_after(outcome, detail)
        metadata |= {} if detail is None else _plan(detail, web)
    predicted = [metrics for outcome in selected if (metrics := _predicted(outcome))]
    return metadata | {
        "by group": table([_row(outcome) for outcome in selected[:ROWS]]),
        "groups": len(groups),
        "plans": sum(outcome.stored.plan is not None for outcome in selected),
        "no change": sum(outcome.stored.outcome == "no change" for outcome in selected),
        "failed": sum(outcome.stored.outcome == "failed" for outcome in selected),
        "partitions moved": sum(metrics["moved"] for metrics in predicted),
        "forecast lag (s)": round(max(map(_forecast_time_lag_s, selected), default=0.0), 1),
        **others(len(selected)),
    }


def _decision(outcome: Outcome) -> dict[str, str]:
    """Return texts: the decision on a group, its diagnosis, and how many consumers it needs."""
    stored, findings = outcome.stored, outcome.decision.findings
    what = f"version {stored.plan.version}" if stored.plan else stored.outcome
    decision = {"decision": f"{stored.group}: {what}: {stored.reason}"}
    if findings is None:
        return decision
    return decision | {
        "diagnosis": findings.diagnosis,
        "evidence": findings.evidence,
        "how many consumers": findings.consumers_why,
        **work_of_group(findings.reported),
    }


def _plan(detail: Detail, web: WebSettings) -> dict[str, Any]:
    """Return the moves of a plan, and how to approve or reject it."""
    plan, predicted = detail.plan, detail.predicted
    since = f"since {plan.created_at.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
    return {
        "cost": f"partitions: {predicted['moved']:,} moved, {predicted['placed']:,} placed; in "
        f"any assignment, a consumer has {int(predicted['lag_lower_bound']):,} records or more",
        "policy": detail.policy or f"version {plan.version} is {plan.state} {since}",
        "state": plan.state,
        "review": details(
            f"Open the review of version {plan.version}", web, plan.group, plan.version
        ),
        **_ways_to_decide(plan),
        "moves": table(
            [
                {
                    "topic-partition": f"{move['topic']}-{move['partition']}",
                    "lag (records)": None if move["weight"] is None else int(move["weight"]),
                    "from": move["previous_member"],
                    "to": move["member"],
                    "why": move["reason"],
                }
                for move in detail.moves[:MOVES]
            ]
        ),
        "version": plan.version,
    }


def _before_and_after(outcome: Outcome, detail: Detail | None) -> dg.TableMetadataValue:
    """Return a table of a group's figures before and after the plan."""
    at = outcome.decision.snapshot_at
    before = _figures(outcome.decision.observed, at)
    after = (
        _figures(detail.predicted, detail.plan.snapshot_at)  # older if an earlier run made the plan
        if detail
        else _figures(_predicted(outcome), at)
    )
    return table(
        [
            {"figure": name, "as it is": before.get(name), "as planned": after.get(name)}
            for name in before | after
        ]
    )


def _figures(metrics: Metrics | None, at: datetime) -> dict[str, str]:
    """Return a mapping from the label of each figure in `metrics` to the figure's text."""
    if not metrics:
        return {}
    known = {**metrics, "imbalance": imbalance(metrics)}
    figures = {
        FIGURES[name].label: FIGURES[name].text(known[name])
        for name in _COMPARED
        if known.get(name) is not None
    }
    if metrics.get("forecast_time_lag_s") is not None:
        figures[FIGURES["catch_up_s"].label] = catch_up_time(metrics.get("catch_up_s"), at)
    return figures


def _row(outcome: Outcome) -> dict[str, Any]:
    decision, stored, predicted = outcome.decision, outcome.stored, _predicted(outcome)
    before, after = (
        _figures(metrics, decision.snapshot_at) for metrics in (decision.observed, predicted)
    )
    return {
        "group": decision.group,
        "outcome": f"version {stored.plan.version}" if stored.plan else stored.outcome,
        "diagnosis": decision.findings.diagnosis if decision.findings else "",
        _LATE: " \N{RIGHTWARDS ARROW} ".join(filter(None, (before.get(_LATE), after.get(_LATE)))),
        "moved": predicted["moved"] if predicted else 0,
        "reason": stored.reason,
        "approval": outcome.approval.reason,
    }


def _predicted(outcome: Outcome) -> Metrics | None:
    decision = outcome.decision
    return decision.predicted if isinstance(decision, PlanDraft) else None


def _forecast_time_lag_s(outcome: Outcome) -> float:
    return float((outcome.decision.observed or {}).get("forecast_time_lag_s") or 0)


def _ways_to_decide(plan: StoredPlan) -> dict[str, Any]:
    """Return how a person can approve or reject a plan; empty if the plan is decided already."""
    if plan.state != "proposed":
        return {}
    if plan.shadow:
        return {"approval": "none: shadow mode"}
    approve, reject = offers.approve(plan, ""), offers.reject(plan, "")
    by_page = ", or by two people on its review's page" if plan.four_eyes == "proxy" else ""
    return {
        "to approve it": link(_LAUNCH, approve.launchpad)
        if approve.launchpad
        else f"in SQL, by a database user who is not a planner{by_page}: it takes four eyes",
        "to reject it": link(_LAUNCH, str(reject.launchpad)),
        "to approve it in SQL": approve.statement,
    }


def _attention(outcome: Outcome) -> tuple[bool, bool, float, float, str]:
    observed = outcome.decision.observed
    heaviest = float(observed["lag_max"] or 0) if observed else 0.0
    waits = _WAITS in (outcome.approval.reason or outcome.stored.reason)
    failed = outcome.stored.outcome == "failed"
    return not failed, not waits, -_forecast_time_lag_s(outcome), -heaviest, outcome.decision.group


def describe_step(step: Mapping[str, Any]) -> dict[str, Any]:
    """Return metadata about a later step of a plan, such as its approval.

    `describe` returned metadata when the plan was made, and the step makes some of these values
    outdated. The result has new values under the same keys: the UI shows only the newest ones.

    Parameters
    ----------
    step
        A row of `fairlead.store.event_queries.read_steps`.
    """
    version, state = step["version"], step["state"]
    at = f"{step['at'].astimezone(UTC):%Y-%m-%d %H:%M} UTC"
    decided = f"version {version} is {state} already"
    return {
        "state": state,
        "since then": f"{step['group']}: version {version} is {state} since {at}, by "
        f"{step['actor']}: {step['reason']}",
        "policy": FOLLOWING.get(state, "nothing waits for a person"),
        "to approve it": decided,
        "to reject it": decided,
        "to approve it in SQL": decided,
    }
