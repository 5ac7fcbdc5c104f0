"""Metadata of `candidate_plans`: each group's diagnosis, the reason for it, and the forecast."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from assets.presentation import ROWS, others, table
from fairlead.common.words import listed
from fairlead.domain.candidate_figures import OBSERVED
from fairlead.domain.figures import FIGURES
from fairlead.domain.work_text import work_of_group

#: Columns to read from the table of candidates.
COLUMNS: Final = [
    *("group", "assignor", "error", "outcome", "lag_max", "forecast_time_lag_s", "utilisation"),
    *("diagnosis", "names", "evidence", "reported"),
]


def worst_first(candidates: pa.Table) -> list[str]:
    """Return the groups in a table of candidates, by descending forecast lag, then by lag."""
    observed = candidates.filter(pc.equal(candidates["assignor"], OBSERVED))
    ordered = observed.sort_by(
        [("forecast_time_lag_s", "descending"), ("lag_max", "descending"), ("group", "ascending")]
    )
    return list(ordered["group"].to_pylist())


def describe(candidates: pa.Table, groups: Sequence[str]) -> dict[str, Any]:
    """Return metadata about the analysis of some groups.

    Parameters
    ----------
    candidates
        Table with the columns `COLUMNS`.
    groups
        The groups to show, in the order of `worst_first`.
    """
    selected = candidates.filter(pc.is_in(candidates["group"], pa.array(groups, pa.string())))
    observed = selected.filter(pc.equal(selected["assignor"], OBSERVED))
    counts = Counter(filter(None, observed["diagnosis"].to_pylist()))
    place = {group: number for number, group in enumerate(groups[:ROWS])}
    first = observed.filter(pc.is_in(observed["group"], pa.array(place, pa.string())))
    rows = sorted(first.to_pylist(), key=lambda row: place[row["group"]])
    return {
        "diagnosis": listed(sorted(f"{count:,} {name}" for name, count in counts.items())),
        "evidence": _evidence(rows[0]) if rows else "",
        **(_work(rows[0]) if rows else {}),
        "groups": len(groups),
        "failed": selected.num_rows - selected["error"].null_count,
        "forecast lag (s)": pc.round(pc.max(observed["forecast_time_lag_s"]), 1).as_py(),
        "utilisation of the most utilised": pc.round(pc.max(observed["utilisation"]), 3).as_py(),
        "by group": table([_row(row) for row in rows]),
        **others(len(groups)),
    }


def _row(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "group": row["group"],
        "diagnosis": row["diagnosis"],
        "about": listed(sorted(row["names"] or ())),
        **{
            FIGURES[name].label: FIGURES[name].text(row[name])
            for name in ("forecast_time_lag_s", "utilisation")
        },
        "evidence": _evidence(row),
        **_work(row),
    }


def _work(row: Mapping[str, Any]) -> dict[str, str]:
    """Return what consumers report: time per record, and share of time in which they are busy.

    Texts without a report are "".
    """
    labels = (FIGURES[name].label for name in ("seconds_per_record", "busy"))
    return dict.fromkeys(labels, "") | work_of_group(json.loads(row["reported"] or "{}"))


def _evidence(row: Mapping[str, Any]) -> str | None:
    evidence: str | None = row["evidence"] or row["error"] or row["outcome"]
    return evidence
