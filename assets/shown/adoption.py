"""What `plan_adoption` shows: how far plans are followed, and what that achieves."""

from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Any

from assets.presentation import DECIMALS, in_order, others, table
from fairlead.common.words import percent
from fairlead.workflows.adoption import Observed, adherence

Metrics = Mapping[str, Any]


def least_adherent_first(seen: Sequence[Observed]) -> list[str]:
    """Return the groups, those that could not be read before the least adherent."""
    return [observed.plan.group for observed in sorted(seen, key=_adherence)]


def describe(
    seen: Sequence[Observed], predicted: Mapping[str, Metrics], groups: Sequence[str]
) -> dict[str, Any]:
    """Show how some groups follow their plans.

    Parameters
    ----------
    seen
        Groups that have a published plan.
    predicted
        Group to the metrics predicted of that plan.
    groups
        Those to show, the least adherent first.
    """
    mine = in_order(seen, groups, attrgetter("plan.group"))
    read = [observed.adoption for observed in mine if observed.adoption]
    planned = sum(adoption.planned for adoption in read)
    as_planned = sum(adoption.as_planned for adoption in read)
    metadata: dict[str, Any] = {"followed": _verdict(mine, as_planned, planned)}
    if planned:
        metadata["adherence"] = adherence(as_planned, planned)
    if held_up := {observed.plan.group: observed.held_up for observed in mine if observed.held_up}:
        metadata["held up by"] = "; ".join(
            f"{group}: {who}" if len(groups) > 1 else who for group, who in held_up.items()
        )
    if mine and mine[0].adoption:
        if len(groups) > 1:
            metadata["shown in detail"] = mine[0].plan.group
        metadata |= _first(mine[0], predicted[mine[0].plan.group])
    if len(groups) > 1:
        metadata["by group"] = table(
            [_row(observed, predicted[observed.plan.group]) for observed in mine],
            {
                "group": "Consumer group, the least adherent first",
                "version": "The published version",
                "adherence": "Share of partitions that their planned member owns",
                "heaviest predicted": "Records of the heaviest member under the plan",
                "heaviest achieved": "The same, computed by the live assignment with the lag that "
                "the plan was made for: not measured anew",
                "lower bound": "No assignment has a lighter heaviest member",
                "note": "Why the live assignment could not be read, or who holds the group up",
            },
        )
    return metadata | {
        "groups with a published plan": len(mine),
        "followed to the letter": sum(_adherence(observed) == 1 for observed in mine),
        **others(len(mine)),
    }


def _verdict(seen: Sequence[Observed], as_planned: int, planned: int) -> str:
    """Say in a sentence how far the plans are followed."""
    if not seen:
        return "no plan is published: there is nothing to follow"
    unread = [observed.error for observed in seen if observed.adoption is None]
    if len(unread) == len(seen):
        return f"not known: {unread[0]}"
    words = f"{as_planned:,} of {planned:,} partitions are where the plan wants them"
    words += f" ({percent(adherence(as_planned, planned))})"
    return words + (f"; {len(unread):,} groups not read" if unread else "")


def _first(observed: Observed, predicted: Metrics) -> dict[str, Any]:
    if observed.adoption is None:
        return {}
    achieved = observed.adoption.achieved
    mean = predicted["lag_mean"]
    return {
        "version": observed.plan.version,
        "heaviest predicted (records)": int(predicted["lag_max"]),
        "heaviest achieved (records)": achieved.lag_max,
        "lower bound (records)": achieved.lag_lower_bound,
        "imbalance predicted": round(predicted["lag_max"] / mean, DECIMALS) if mean else 1.0,
        "imbalance achieved": round(achieved.lag_skew, DECIMALS),
        "worst topic over its even share": round(achieved.topic_spread, DECIMALS),
    }


def _adherence(observed: Observed) -> float:
    share = observed.adoption.adherence if observed.adoption else None
    return -1.0 if share is None else share


def _row(observed: Observed, predicted: Metrics) -> dict[str, Any]:
    adoption = observed.adoption
    return {
        "group": observed.plan.group,
        "version": observed.plan.version,
        "adherence": percent(adoption.adherence if adoption else None),
        "heaviest predicted": int(predicted["lag_max"]),
        "heaviest achieved": adoption.achieved.lag_max if adoption else None,
        "lower bound": adoption.achieved.lag_lower_bound if adoption else None,
        "note": observed.error or observed.held_up,
    }
