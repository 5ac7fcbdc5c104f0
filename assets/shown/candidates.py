"""What `candidate_plans` shows: every assignor side by side, and what moves buy."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from assets.presentation import columns_for, listed, others, picture, table
from fairlead.plans.choice import Candidate, choose, improvement
from fairlead.plans.drafting import OBSERVED
from fairlead.plots import frontier, staircase
from fairlead.policy import Policy, policy_for
from fairlead.spark.planning import SUMMARY

#: What is read of the candidates: assignments stay in the warehouse.
COLUMNS: Final = [*SUMMARY.names, "frontier"]

Row = Mapping[str, Any]

_PERCENT: Final = "\N{NO-BREAK SPACE}%"


def worst_first(candidates: pa.Table) -> list[str]:
    """Return the groups of a table of candidates, the one with the heaviest member first."""
    observed = candidates.filter(pc.equal(candidates["assignor"], OBSERVED))
    ordered = observed.sort_by([("lag_max", "descending"), ("group", "ascending")])
    return list(ordered["group"].to_pylist())


def describe(
    candidates: pa.Table,
    groups: Sequence[str],
    policies: Sequence[Policy],
    draw: bool,  # noqa: FBT001 - `Describe`
) -> dict[str, Any]:
    """Show the candidates of some groups.

    Parameters
    ----------
    candidates
        Of the columns `COLUMNS`.
    groups
        The one with the heaviest member first.
    policies
        Say which candidate would be chosen.
    draw
        Whether to draw what moves buy in the first of the groups.
    """
    place = {group: number for number, group in enumerate(groups)}
    mine = candidates.filter(pc.is_in(candidates["group"], pa.array(groups, pa.string())))
    rows = sorted(mine.to_pylist(), key=lambda row: (place[row["group"]], *_light_first(row)))
    observed = {row["group"]: row for row in rows if row["assignor"] == OBSERVED}
    failed = sum(row["error"] is not None for row in rows)
    shown: dict[str, Any] = {}
    if groups:
        of_first = [row for row in rows if row["group"] == groups[0]]
        if len(groups) > 1:
            shown["shown in detail"] = groups[0]
        shown |= _first(groups[0], of_first, policy_for(groups[0], policies), draw=draw)
    shown["candidates"] = table(
        [_row(row, observed.get(row["group"])) for row in rows],
        columns_for(
            groups,
            {
                "group": "Consumer group, the one with the heaviest member first",
                "assignor": "observed: the assignment the group has now",
                "heaviest": "Records of the heaviest member",
                "change": "Of the heaviest member, against what the group has now",
                "over bound": "No assignment has a heaviest member below the bound",
                "each has": "Partitions of a member, the fewest and the most",
                "moved": "Partitions taken from a present owner",
                "placed": "Partitions without an owner that get one",
                **({"error": "Why there is none"} if failed else {}),
            },
        ),
    )
    return shown | {
        "assignors": listed({row["assignor"] for row in rows} - {OBSERVED}),
        "groups": len(groups),
        "failed": failed,
        **others(len(groups)),
    }


def _first(group: str, rows: Sequence[Row], policy: Policy, *, draw: bool) -> dict[str, Any]:
    """Show the figures and the plot of one group."""
    observed = next((row for row in rows if row["assignor"] == OBSERVED), None)
    offered = [_candidate(row) for row in rows if row["assignor"] != OBSERVED]
    lightest = min((one.metrics["lag_max"] for one in offered if one.metrics), default=None)
    if observed is None or observed["error"] is not None or lightest is None:
        return {}
    preferred = choose(policy, offered, observed).candidate
    shown: dict[str, Any] = {}
    if draw:
        points: list[Row] = next((row["frontier"] for row in rows if row["frontier"]), [])
        curve = [(point["moves"], point["lag_max"]) for point in points]
        svg = frontier(curve, offered, chosen=preferred.assignor if preferred else None)
        alt = f"{group}: moves against the heaviest member's lag"
        if curve:
            shown["what moves buy"] = picture(staircase(curve), alt)
        shown["what moves buy, in full"] = picture(svg, alt)
    if preferred is not None and preferred.outcome:
        shown[f"what {preferred.assignor} says"] = preferred.outcome
    return shown | {
        "heaviest member now (records)": observed["lag_max"],
        "heaviest member at best (records)": lightest,
        "lower bound (records)": observed["lag_lower_bound"],
    }


def _candidate(row: Row) -> Candidate:
    metrics = None if row["error"] is not None else row
    return Candidate(row["assignor"], metrics, row["outcome"], row["error"])


def _row(row: Row, observed: Row | None) -> dict[str, Any]:
    shown = {"group": row["group"], "assignor": row["assignor"]}
    if row["error"] is not None or row["lag_max"] is None:
        figures = ("heaviest", "change", "over bound", "each has", "moved", "placed")
        return {**shown, **dict.fromkeys(figures), "error": row["error"]}
    change = None
    if row["assignor"] != OBSERVED and observed and observed["lag_max"]:
        change = f"{round(-100 * improvement(observed, row), 1) + 0.0:+.1f}{_PERCENT}"  # not -0.0
    return {
        **shown,
        "heaviest": row["lag_max"],
        "change": change,
        "over bound": f"{100 * row['gap']:.1f}{_PERCENT}",
        "each has": f"{row['count_min']:,} to {row['count_max']:,}",
        "moved": row["moved"],
        "placed": row["placed"],
        "error": None,
    }


def _light_first(row: Row) -> tuple[Any, ...]:
    return (
        row["assignor"] != OBSERVED,
        row["error"] is not None,
        float(row["lag_max"] or 0),
        row["moved"] or 0,
        row["assignor"],
    )
