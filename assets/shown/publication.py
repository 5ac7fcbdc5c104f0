"""What `published_plan` shows: what was sent, what was refused and why, and what is in force."""

from collections.abc import Sequence
from datetime import UTC
from operator import attrgetter
from typing import Any

import dagster as dg

from assets.presentation import in_order, others, table
from fairlead.domain.records import StoredPlan
from fairlead.workflows.publication import Published


def describe(
    results: Sequence[Published], current: Sequence[StoredPlan], groups: Sequence[str]
) -> dict[str, Any]:
    """Show what became of the approved plans of some groups.

    Parameters
    ----------
    results
        Of this run.
    current
        The plans that are published now, by this run or before it, and those that are proposed.
    groups
        Those to show, the ones whose plan was refused first.
    """
    mine = in_order(results, groups, attrgetter("group"))
    ordered = in_order(current, groups, attrgetter("group"))
    followed = [plan for plan in ordered if plan.state == "published"]
    proposed = [plan for plan in ordered if plan.state == "proposed"]
    metadata: dict[str, Any] = {}
    if not followed:
        metadata["in force"] = "no plan: the consumers use their fallback"
    elif len(groups) == 1:
        metadata |= _one(followed[0])
    else:
        metadata["in force"] = _in_force(followed)
    if len(groups) == 1 and proposed:
        (plan,) = proposed
        metadata["waits"] = (
            f"version {plan.version}, for a person: assignment_plan shows how to decide"
        )
    if len(groups) == 1 and (left := [result for result in mine if result.waits]):
        metadata["waits"] = (
            f"version {left[0].version}, for its publication: {left[0].reason}; the sensor "
            "approved_plans tries again"
        )
    if mine:
        metadata["plans"] = table(
            [
                {
                    "group": result.group,
                    "version": result.version,
                    "outcome": "published" if result.position else "refused",
                    "where or why not": result.reason,
                }
                for result in mine
            ],
            {
                "group": "Consumer group",
                "version": "Version of its plan",
                "outcome": "Published, or refused and left as it is or stale",
                "where or why not": "Partition and offset in the plan topic, or the reason",
            },
        )
    return metadata | {
        "published": sum(result.position is not None for result in mine),
        "refused": sum(result.position is None for result in mine),
        "plans in force": len(followed),
        "plans that wait for a person": len(proposed),
        **others(max(len(mine), len(followed), len(proposed))),
    }


def _one(plan: StoredPlan) -> dict[str, Any]:
    return {
        "in force": f"version {plan.version}, by {plan.assignor}, expires: {_expiry(plan)}",
        "version": plan.version,
        "topic": plan.topic,
        "partition": plan.partition,
        "offset": plan.record_offset,
        "sha256": plan.sha256,
    }


def _in_force(plans: Sequence[StoredPlan]) -> dg.TableMetadataValue:
    return table(
        [
            {
                "group": plan.group,
                "version": plan.version,
                "topic": plan.topic,
                "partition": plan.partition,
                "offset": plan.record_offset,
                "expires": _expiry(plan),
                "sha256": plan.sha256,
            }
            for plan in plans
        ],
        {
            "group": "Consumer group",
            "version": "The version that its consumers are to follow",
            "topic": "Where they read it",
            "partition": "Of the topic",
            "offset": "Of the record",
            "expires": "When consumers leave it, unless they are told of it again",
            "sha256": "Of the bytes that were approved and sent",
        },
    )


def _expiry(plan: StoredPlan) -> str:
    if plan.lease_until is None:
        return "not told yet"
    return f"{plan.lease_until.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
