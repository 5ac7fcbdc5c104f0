"""Metadata of `plan_adoption`: the share of partitions whose owner is the planned one."""

from collections.abc import Sequence
from operator import attrgetter
from typing import Any

from assets.presentation import in_order, others, table
from fairlead.domain.figures import FIGURES, adherence
from fairlead.workflows.adoption import Observed


def least_adherent_first(seen: Sequence[Observed]) -> list[str]:
    """Return the groups: those that could not be read, then the others by ascending adherence."""
    return [observed.plan.group for observed in sorted(seen, key=_adherence)]


def describe(seen: Sequence[Observed], groups: Sequence[str]) -> dict[str, Any]:
    """Return metadata about the adherence of some groups.

    Parameters
    ----------
    seen
        The adoption of every published plan in the run.
    groups
        The groups to show, the least adherent first.
    """
    selected = in_order(seen, groups, attrgetter("plan.group"))
    read = [observed.adoption for observed in selected if observed.adoption]
    planned = sum(adoption.planned for adoption in read)
    as_planned = sum(adoption.as_planned for adoption in read)
    return {
        "followed": _verdict(selected, as_planned, planned),
        "adherence": adherence(as_planned, planned),
        "groups with a published plan": len(selected),
        "followed completely": sum(_adherence(observed) == 1 for observed in selected),
        "by group": table([_row(observed) for observed in selected]),
        **others(len(selected)),
    }


def _verdict(seen: Sequence[Observed], as_planned: int, planned: int) -> str:
    """Return a sentence about the adherence to the plans."""
    if not seen:
        return "no plan is published"
    unread = [observed.error for observed in seen if observed.adoption is None]
    if len(unread) == len(seen):
        return f"not known: {unread[0]}"
    share = FIGURES["adherence"].text(adherence(as_planned, planned))
    words = f"{as_planned:,} of {planned:,} partitions have their planned owner ({share})"
    return words + (f"; {len(unread):,} groups not read" if unread else "")


def _adherence(observed: Observed) -> float:
    share = observed.adoption.adherence if observed.adoption else None
    return -1.0 if share is None else share


def _row(observed: Observed) -> dict[str, Any]:
    adoption = observed.adoption
    return {
        "group": observed.plan.group,
        "version": observed.plan.version,
        "adherence": FIGURES["adherence"].text(adoption.adherence if adoption else None),
        "error, or delaying members": observed.error or observed.held_up,
    }
