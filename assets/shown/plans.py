"""What `assignment_plan` shows: every decision, and of one plan its effect and what it awaits."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC
from operator import attrgetter
from typing import Any, Final

import dagster as dg
import pyarrow as pa
import pyarrow.compute as pc
from sqlalchemy import Engine

from assets.presentation import in_order, launchpad, others, picture, table
from assets.shown.words import share, span
from fairlead.common.commands import shell_quote, sql_call
from fairlead.common.words import caught_up, gigabytes, number, percent, times
from fairlead.domain.as_problem import Ownership, planned
from fairlead.domain.candidate_figures import lightening
from fairlead.domain.consumers import changes
from fairlead.domain.records import PlanDraft, StoredPlan
from fairlead.domain.samples import ownership
from fairlead.errors import InvalidPlanError, TamperedPlanError
from fairlead.settings import WebSettings
from fairlead.store.history_queries import read_plan
from fairlead.store.plans import PlanStore
from fairlead.surfaces.links import review_url
from fairlead.surfaces.plots import bars, consumers
from fairlead.wire.document import PlanDocument
from fairlead.workflows.proposal import Outcome

Metrics = Mapping[str, Any]

#: Consumers and moves of the plan in detail; its review has all of them.
ROWS_OF_A_PLAN: Final = 25
_WAITS: Final = "waits for a person"
#: What a state means for what happens next.
_FOLLOWING: Final = {
    "approved": "the sensor approved_plans publishes it",
    "published": "consumers follow it: plan_adoption shows how far; the job retire takes it back",
    "rejected": "consumers keep what they have; the next planning run looks again",
    "expired": "it came to nothing; the next planning run looks again",
    "stale": "the group was no longer what it was made for; the next planning run looks again",
    "superseded": "a newer version has taken its place",
    "retired": "consumers are back at their fallback",
}


@dataclass(frozen=True, eq=False)
class Detail:
    """The plan that is shown in detail: of this run, or one before it that still waits.

    Parameters
    ----------
    plan
        As it is stored.
    document
        The same, read and verified.
    history
        Its row of `plan_history`, with its `moves`, a row each.
    predicted
        Its metrics.
    before
        Who owned what in the snapshot of this run.
    policy
        What the policy said of publishing it unasked; empty: it was said in a run before.
    """

    plan: StoredPlan
    document: PlanDocument
    history: Mapping[str, Any]
    predicted: Metrics
    before: Ownership
    policy: str


def detail_of(
    engine: Engine,
    outcomes: Sequence[Outcome],
    waiting: Mapping[str, StoredPlan],
    *,
    samples: pa.Table,
    groups: Sequence[str],
    warn: Callable[[str], None],
) -> Detail | None:
    """Return the plan to show in detail: the first that waits for a person, else the first made."""
    by_group = {outcome.decision.group: outcome for outcome in outcomes}
    made = {group: by_group[group].stored.plan for group in groups}
    plans = [waiting.get(group) or made[group] for group in groups]
    found = [plan for plan in plans if plan is not None]
    if not found:
        return None
    plan = next((plan for plan in found if plan.state == "proposed"), found[0])
    group, outcome = plan.group, by_group[plan.group]
    try:
        document = plan.verify()
    except (InvalidPlanError, TamperedPlanError) as error:
        warn(f"Group {group}: {error}")  # a check says so too; the next plan takes its place
        return None
    predicted = PlanStore(engine).predicted([plan])
    return Detail(
        plan=plan,
        document=document,
        history=read_plan(engine, group, plan.version),
        predicted=predicted[group, plan.version],
        before=ownership(samples.filter(pc.equal(samples["group"], group)).to_pylist()[0]),
        policy=outcome.approval.reason,
    )


def worst_first(outcomes: Sequence[Outcome]) -> list[str]:
    """Return the groups: failures, what waits for a person, then by how late, then by lag."""
    ordered = sorted(outcomes, key=_attention)
    return list(dict.fromkeys(outcome.decision.group for outcome in ordered))


def describe(
    outcomes: Sequence[Outcome],
    groups: Sequence[str],
    detail: Detail | None,
    web: WebSettings,
    draw: bool,  # noqa: FBT001 - `Describe`
) -> dict[str, Any]:
    """Show the decisions on some groups.

    Parameters
    ----------
    outcomes
        Of the run.
    groups
        Those to show, in the order of `worst_first`.
    detail
        The plan of one of them to show in detail.
    web
        Says where reviews are served.
    draw
        Whether to draw that plan.
    """
    mine = in_order(outcomes, groups, attrgetter("decision.group"))
    metadata: dict[str, Any] = {}
    alone = len(groups) == 1
    if alone:
        metadata["decision"] = "; ".join(_decision(outcome) for outcome in mine)
        metadata |= _found(mine[0]) if mine else {}
    elif detail is not None:
        metadata["shown in detail"] = f"{detail.plan.group}, version {detail.plan.version}"
    if detail is not None:
        metadata |= _plan(detail, web, draw=draw, alone=alone)
    if alone:
        return metadata | ({"figures": _figures(mine[0], detail)} if mine else {})
    return metadata | {
        "by group": _by_group(mine),
        "groups": len(groups),
        "plans": sum(outcome.stored.plan is not None for outcome in mine),
        "no change": sum(outcome.stored.outcome == "no change" for outcome in mine),
        "failed": sum(outcome.stored.outcome == "failed" for outcome in mine),
        **others(len(mine)),
    }


def _found(outcome: Outcome) -> dict[str, Any]:
    """Show what a group was found to be, by what, and how many consumers would do."""
    found = outcome.decision.findings
    if found is None:
        return {}
    return {
        "diagnosis": found.diagnosis,
        "evidence": found.evidence,
        "how many consumers": found.consumers_why,
    }


def _figures(outcome: Outcome, detail: Detail | None) -> dg.TableMetadataValue:
    """Show a group's figures as it is and as planned, those that are known."""
    decision = outcome.decision
    planned = decision.predicted if isinstance(decision, PlanDraft) else None
    if detail is not None:
        planned = detail.predicted

    def told(metrics: Metrics | None) -> dict[str, str | None]:
        if not metrics:
            return {}
        heaviest, spread = metrics["lag_max"], metrics["topic_spread"]
        cost = metrics.get("rack_cost_per_day")
        late_s = metrics.get("late_s")
        return {
            "late, forecast": span(late_s),
            "fullest member gets": share(metrics.get("utilisation")),
            "caught up": None
            if late_s is None
            else caught_up(metrics.get("caught_up_s"), decision.snapshot_at),
            "heaviest member, in records": None if heaviest is None else number(heaviest),
            "heaviest member over the mean": times(_imbalance(metrics)),
            "worst topic over its even share": None if spread is None else times(spread),
            "from other racks, a day": gigabytes(metrics.get("rack_gb_per_day")),
            "which costs, a day": None if cost is None else f"{cost:.2f}",
        }

    before, after = told(decision.observed), told(planned)
    return table(
        [
            {"figure": name, "as it is": before.get(name), "as planned": after.get(name)}
            for name in before | after
            if before.get(name) is not None or after.get(name) is not None
        ],
        {
            "figure": "At the policy's horizon, where it is a forecast",
            "as it is": "Of the snapshot",
            "as planned": "Of the plan, if its forecast comes true; empty: there is no plan",
        },
    )


def _by_group(outcomes: Sequence[Outcome]) -> dg.TableMetadataValue:
    return table(
        [_row(outcome) for outcome in outcomes],
        {
            "group": "Consumer group: failures, what waits, then by how late it is forecast",
            "diagnosis": "What is the matter",
            "outcome": "A plan's version, or why there is none",
            "late": "Forecast at the policy's horizon: as it is, then as planned",
            "heaviest": "Records of the heaviest member: as observed, then predicted",
            "moved": "Partitions taken from a present owner",
            "reason": "Why",
            "approval": "What the policy says of publishing it unasked",
            "review": "Shows all of it",
        },
    )


def _plan(detail: Detail, web: WebSettings, *, draw: bool, alone: bool) -> dict[str, Any]:
    """Show what a plan does, how to decide on it, and what it is in figures."""
    plan, predicted = detail.plan, detail.predicted
    rows = changes(detail.document, detail.before, planned(detail.document))
    since = f"since {plan.created_at.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
    metadata: dict[str, Any] = {
        **({} if detail.policy else {"effect": _effect(detail.history, predicted)}),
        "cost": f"partitions: {predicted['moved']:,} moved, {predicted['placed']:,} placed; no "
        f"assignment's heaviest consumer is below {int(predicted['lag_lower_bound']):,} records",
        "policy": detail.policy or f"version {plan.version} is {plan.state} {since}",
        "state": plan.state,
        "review": _review(plan, web),
        **_ways_to_decide(plan),
    }
    if draw:
        alt = f"{plan.group}, version {plan.version}: lag of each consumer before and after"
        if alone:  # beside other groups there is no room for both
            metadata["before and after"] = picture(bars(rows), alt)
        metadata["before and after, in full"] = picture(consumers(rows), alt)
    return metadata | {
        "consumers": table(
            [
                {
                    "consumer": row.consumer,
                    "partitions before": row.partitions_before,
                    "lag before": row.lag_before,
                    "partitions after": row.partitions_after,
                    "lag after": row.lag_after,
                }
                for row in rows[:ROWS_OF_A_PLAN]
            ],
            {
                "consumer": "Member name: instance id, client id or member id",
                "partitions before": "As observed",
                "lag before": "Of these, in records, when the plan was made",
                "partitions after": "Under the plan",
                "lag after": "Of these, in records, when the plan was made",
            },
        ),
        "moves": table(
            [
                {
                    "topic": move["topic"],
                    "partition": move["partition"],
                    "lag": None if move["weight"] is None else int(move["weight"]),
                    "from": move["previous_member"],
                    "to": move["member"],
                    "why": move["reason"],
                }
                for move in detail.history["moves"][:ROWS_OF_A_PLAN]
            ],
            {
                "topic": "Topic",
                "partition": "Partition",
                "lag": "In records, the most first",
                "from": "Owner before; empty: nobody",
                "to": "Owner under the plan",
                "why": "The assignor's reason",
            },
        ),
        "version": plan.version,
        "assignor": plan.assignor,
        "sha256": plan.sha256,
    }


def describe_step(step: Mapping[str, Any]) -> dict[str, Any]:
    """Show what has become of a plan since its run.

    The names are those that `describe` gave what no longer holds: the UI shows the newest of each.

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


def _effect(history: Mapping[str, Any], predicted: Metrics) -> str:
    """Say what a plan of a run before gains; of this run's own, its decision says so."""
    after = f"{int(predicted['lag_max']):,} records"
    before = history["lag_max_before"]
    if before is None:
        return f"the heaviest consumer has {after}"
    less = percent(lightening({"lag_max": before}, predicted))
    return f"the heaviest consumer goes from {int(before):,} to {after}, {less} less"


def _imbalance(metrics: Metrics) -> float:
    """Return the heaviest member's lag over the mean."""
    mean = float(metrics["lag_mean"] or 0)
    return float(metrics["lag_max"]) / mean if mean else 1.0


def _ways_to_decide(plan: StoredPlan) -> dict[str, Any]:
    """Lead a person to approve or reject a plan that waits for one."""
    if plan.state != "proposed":
        return {}
    named: dict[str, Any] = {"group": plan.group, "version": plan.version}
    sql = sql_call("approve_plan", plan.group, plan.version, "why", plan.sha256)
    ways: dict[str, Any] = {}
    if plan.observed_only:
        return {"approval": "none: the policy of the group observes, and publishes nothing"}
    if plan.four_eyes:
        by_page = ", or by two people on its review's page" if plan.four_eyes == "proxy" else ""
        said = f"it is approved in SQL, by a database user who is no planner{by_page}"
        ways["four eyes"] = said
    else:
        ways["to approve it"] = launchpad(
            "Open the launchpad, type why, launch",
            "approve",
            "approve_plan",
            **named,
            sha256=plan.sha256,
        )
    return ways | {
        "to reject it": launchpad(
            "Open the launchpad, type why, launch", "reject", "reject_plan", **named
        ),
        "to approve it in SQL": sql,
    }


def _review(plan: StoredPlan, web: WebSettings) -> str | dg.MarkdownMetadataValue:
    """Link to the plan's review where one is served; else say which command writes it."""
    url = review_url(web, plan.group, plan.version)
    if url is None:
        return f"fairlead plans review {shell_quote(plan.group)} {plan.version}"
    return dg.MetadataValue.md(f"[Open the review of version {plan.version}]({url})")


def _decision(outcome: Outcome) -> str:
    stored = outcome.stored
    what = f"version {stored.plan.version}" if stored.plan else stored.outcome
    return f"{what}: {stored.reason}"


def _row(outcome: Outcome) -> dict[str, Any]:
    decision, stored = outcome.decision, outcome.stored
    predicted = decision.predicted if isinstance(decision, PlanDraft) else None
    group = shell_quote(stored.group)
    return {
        "group": decision.group,
        "outcome": f"version {stored.plan.version}" if stored.plan else stored.outcome,
        "diagnosis": decision.findings.diagnosis if decision.findings else "",
        "late": _both(_late(decision.observed), _late(predicted)),
        "heaviest": _both(_lag(decision.observed), _lag(predicted)),
        "moved": predicted["moved"] if predicted else 0,
        "reason": stored.reason,
        "approval": outcome.approval.reason,
        "review": f"fairlead plans review {group} {stored.plan.version}"
        if stored.plan
        else f"fairlead history {group}",
    }


def _both(before: str, after: str) -> str:
    return f"{before} \N{RIGHTWARDS ARROW} {after}" if after else before


def _late(metrics: Metrics | None) -> str:
    return span(metrics.get("late_s") if metrics else None) or ""


def _lag(metrics: Metrics | None) -> str:
    return "" if metrics is None or metrics["lag_max"] is None else f"{int(metrics['lag_max']):,}"


def _attention(outcome: Outcome) -> tuple[bool, bool, float, float, str]:
    observed = outcome.decision.observed
    late_s = float(observed.get("late_s") or 0) if observed else 0.0
    heaviest = float(observed["lag_max"] or 0) if observed else 0.0
    waits = _WAITS in (outcome.approval.reason or outcome.stored.reason)
    failed = outcome.stored.outcome == "failed"
    return not failed, not waits, -late_s, -heaviest, outcome.decision.group
