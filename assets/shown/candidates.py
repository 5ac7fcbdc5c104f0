"""What `candidate_plans` shows: what is the matter with each group, and every assignor's answer."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from assets.presentation import DECIMALS, ROWS, columns_for, others, picture, table
from assets.shown.words import share, span
from assets.shown.work import speeds, work
from fairlead.common.words import caught_up, gigabytes, listed
from fairlead.domain.candidate_figures import OBSERVED, candidate_of
from fairlead.domain.samples import taken_at
from fairlead.spark.planning import SUMMARY
from fairlead.surfaces.plots import frontier, staircase

#: What is read of the candidates: assignments stay in the warehouse.
COLUMNS: Final = [
    *SUMMARY.names,
    *(
        "diagnosis",
        "names",
        "evidence",
        "consumers_why",
        *("costs", "capacities", "topics", "partition_counts", "arrival_rates"),
        "decision",
        "decision_reason",
        "chosen",
        "frontier",
    ),
]
#: The columns of traffic between racks, where any is known.
_FAR_IF_KNOWN: Final[Mapping[bool, Mapping[str, str]]] = {
    False: {},
    True: {
        "from other racks": "Gigabytes a day, as rates are and records on average",
        "which costs": "A day, by the policy's price",
    },
}

Row = Mapping[str, Any]


def worst_first(candidates: pa.Table) -> list[str]:
    """Return the groups of a table of candidates, the one forecast latest first, then by lag."""
    observed = candidates.filter(pc.equal(candidates["assignor"], OBSERVED))
    ordered = observed.sort_by(
        [("late_s", "descending"), ("lag_max", "descending"), ("group", "ascending")]
    )
    return list(ordered["group"].to_pylist())


def describe(
    candidates: pa.Table,
    groups: Sequence[str],
    draw: bool,  # noqa: FBT001 - `Describe`
) -> dict[str, Any]:
    """Show what some groups were found to be, and their candidates.

    Parameters
    ----------
    candidates
        Of the columns `COLUMNS`.
    groups
        In the order of `worst_first`.
    draw
        Whether to draw what moves buy in the first of the groups.
    """
    mine = candidates.filter(pc.is_in(candidates["group"], pa.array(groups, pa.string())))
    # A table shows no more rows than that; all groups are counted below.
    place = {group: number for number, group in enumerate(groups[:ROWS])}
    first = mine.filter(pc.is_in(mine["group"], pa.array(groups[:ROWS], pa.string())))
    rows = sorted(first.to_pylist(), key=lambda row: (place[row["group"]], *_best_first(row)))
    observed = [row for row in rows if row["assignor"] == OBSERVED]
    metadata: dict[str, Any] = {}
    if len(groups) == 1 and observed and observed[0]["diagnosis"]:
        metadata |= _found(observed[0])
    if len(groups) > 1:
        metadata["diagnoses"] = table(
            [_diagnosed(row) for row in observed],
            {
                "group": "Consumer group, the one that is forecast latest first",
                "diagnosis": "What is the matter",
                "about": "Members or partitions",
                "late in": "The worst partition's lateness, forecast at the policy's horizon",
                "fullest member": "What arrives at its partitions, as a share of what it can do",
                "evidence": "By what",
            },
        )
    if draw and groups:
        metadata |= _drawn(groups[0], [row for row in rows if row["group"] == groups[0]])
    failed = mine.num_rows - mine["error"].null_count
    metadata["candidates"] = table(
        [_row(row) | _far(row) for row in rows],
        columns_for(
            groups,
            {
                "group": "Consumer group, the one that is forecast latest first",
                "assignor": "observed: the assignment the group has now",
                "late in": "The worst partition's lateness, forecast at the policy's horizon",
                "fullest": "What arrives at the fullest member, as a share of what it can do",
                "heaviest": "Lag of the heaviest member, in records",
                "partitions": "Fewest and most of a member",
                "worst topic": "Its largest share on one member over its even share: 1 is even",
                "moved": "Partitions taken from a present owner",
                "placed": "Partitions without an owner that get one",
                **_FAR_IF_KNOWN[mine["rack_gb_per_day"].null_count < mine.num_rows],
                **({"error": "Why there is none"} if failed or mine["lag_max"].null_count else {}),
            },
        ),
    )
    as_it_is = mine.filter(pc.equal(mine["assignor"], OBSERVED))
    counts = Counter(filter(None, as_it_is["diagnosis"].to_pylist()))
    return metadata | {
        "diagnosis of groups": listed(
            sorted(f"{count:,} {name}" for name, count in counts.items())
        ),
        "assignors": listed(sorted({*pc.unique(mine["assignor"]).to_pylist()} - {OBSERVED})),
        "groups": len(groups),
        "failed": failed,
        **others(len(groups)),
    }


def _drawn(group: str, rows: Sequence[Row]) -> dict[str, Any]:
    """Draw what moves buy in a group, where there are candidates."""
    offered = [candidate_of(row) for row in rows if row["assignor"] != OBSERVED]
    curve = next((candidate.frontier for candidate in offered if candidate.frontier), ())
    if not offered:
        return {}
    chosen = next((row["chosen"] for row in rows if row["assignor"] == OBSERVED), None)
    alt = f"{group}: moves against forecast lateness"
    metadata: dict[str, Any] = {}
    if len(curve) > 1:
        metadata["what moves buy"] = picture(staircase(curve), alt)
    for row in rows:
        if row["assignor"] == chosen and row["outcome"]:
            metadata[f"what {chosen} says"] = row["outcome"]
    return metadata | {
        "what moves buy, in full": picture(frontier(curve, offered, chosen=chosen), alt)
    }


def _found(row: Row) -> dict[str, Any]:
    """Show what one group was found to be."""
    return {
        "diagnosis": row["diagnosis"],
        "about": listed(sorted(row["names"])),
        "evidence": row["evidence"],
        "decision": f"{row['decision']}: {row['decision_reason']}",
        "late as it is (s)": round(row["late_s"], 1),
        "caught up as it is": caught_up(row["caught_up_s"], taken_at(row["snapshot_id"])),
        "consumers": row["consumers_why"],
        "fullest member as it is": share(row["utilisation"]),
        "work": work(row),
        "speeds": speeds(row["capacities"]),
    }


def _diagnosed(row: Row) -> dict[str, Any]:
    return {
        "group": row["group"],
        "diagnosis": row["diagnosis"],
        "about": listed(sorted(row["names"] or ())),
        "late in": span(row["late_s"]),
        "fullest member": share(row["utilisation"]),
        "evidence": row["evidence"] or row["error"] or row["outcome"],
    }


def _row(row: Row) -> dict[str, Any]:
    metadata = {"group": row["group"], "assignor": row["assignor"]}
    if row["error"] is not None or row["lag_max"] is None:
        figures = ("late in", "fullest", "heaviest", "partitions", "worst topic")
        return {
            **metadata,
            **dict.fromkeys((*figures, "moved", "placed")),
            "error": row["error"] or row["outcome"],
        }
    return {
        **metadata,
        "late in": span(row["late_s"]),
        "fullest": share(row["utilisation"]),
        "heaviest": row["lag_max"],
        "partitions": f"{row['count_min']:,} to {row['count_max']:,}",
        "worst topic": round(row["topic_spread"], DECIMALS),
        "moved": row["moved"],
        "placed": row["placed"],
        "error": None,
    }


def _far(row: Row) -> dict[str, Any]:
    cost = row["rack_cost_per_day"]
    return {
        "from other racks": gigabytes(row["rack_gb_per_day"]),
        "which costs": None if cost is None else f"{cost:,.2f}",
    }


def _best_first(row: Row) -> tuple[Any, ...]:
    return (
        row["assignor"] != OBSERVED,
        row["error"] is not None,
        float(row["late_s"] or 0),
        float(row["utilisation"] or 0),
        row["moved"] or 0,
        row["assignor"],
    )
