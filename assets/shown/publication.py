"""Metadata of `published_plan`: plans sent, plans not sent and why, and present plans."""

from collections.abc import Sequence
from operator import attrgetter
from typing import Any

from assets.presentation import in_order, others, table
from fairlead.common.words import moment
from fairlead.domain.reconciliation import WHO_TRIES_AGAIN
from fairlead.domain.records import StoredPlan
from fairlead.workflows.reconciling import StepResult


def describe(
    results: Sequence[StepResult], current: Sequence[StoredPlan], groups: Sequence[str]
) -> dict[str, Any]:
    """Return metadata about the publication of some groups' plans.

    Parameters
    ----------
    results
        What the run has sent or refused to send.
    current
        The published and the proposed plans.
    groups
        The groups to show, in this order.
    """
    selected = in_order(results, groups, attrgetter("group"))
    ordered = in_order(current, groups, attrgetter("group"))
    not_sent = [result for result in selected if result.refused or result.waits]
    proposed = [plan for plan in ordered if plan.state == "proposed"]
    followed = [plan for plan in ordered if plan.state == "published"]
    rows = [
        *map(_not_sent, not_sent),
        *(_row(plan, "waits for a person", "assignment_plan shows how") for plan in proposed),
        *(_row(plan, "in force", _place(plan)) for plan in followed),
    ]
    return {
        "in force": f"version {followed[0].version} of {followed[0].group}, {_place(followed[0])}"
        if followed
        else "no plan: the consumers use their fallback",
        "published": sum(result.published for result in selected),
        "refused": len(not_sent),
        "plans in force": len(followed),
        "plans that wait for a person": len(proposed),
        "plans": table(rows),
        **others(len(rows)),
    }


def _not_sent(result: StepResult) -> dict[str, Any]:
    if result.waits:
        return _row(result, "waits", f"{result.reason}; {WHO_TRIES_AGAIN}")
    return _row(result, "refused", result.reason)


def _row(plan: StoredPlan | StepResult, outcome: str, why: str) -> dict[str, Any]:
    return {
        "group": plan.group,
        "version": plan.version,
        "outcome": outcome,
        "position, or reason": why,
    }


def _place(plan: StoredPlan) -> str:
    """Return a plan's position in the plan topic, and when its lease (its validity) ends."""
    until = "no lease yet" if plan.lease_until is None else f"until {moment(plan.lease_until)}"
    return f"in {plan.topic}-{plan.partition} at offset {plan.record_offset}, {until}"
