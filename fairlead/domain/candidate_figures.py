"""Candidates for a plan, and what of them counts: how late a group will be.

Belongs here: the figures of candidates that the analysis has compared, and what they come to. Does
not: comparing them (`fairlead.domain.analysis`), storing the decision (`fairlead.store`), nor
whether the plan may be published unasked (`approval`). Pure.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

Outcome = Literal["plan", "no change", "failed"]
#: Among candidates, the assignment as it is.
OBSERVED: Final = "observed"
METRICS: Final = (
    *("count_min", "count_max", "balance_score"),
    *("lag_max", "lag_mean", "lag_lower_bound", "gap"),
    *("kept", "moved", "placed", "topic_spread"),
)
"""The fields of `assignors.metrics.Metrics`, without the import of numpy, which commands avoid."""
FORECAST: Final = ("late_s", "utilisation", "caught_up_s")
"""Forecast figures; None for assignments that were not analysed."""
RACKS: Final = ("rack_gb_per_day", "rack_cost_per_day")
"""Rack traffic; None for groups without racks."""
_FIGURES: Final = (*METRICS, *FORECAST, *RACKS)


@dataclass(frozen=True)
class SnapshotCandidate:
    """What one assignor would do with a snapshot.

    Parameters
    ----------
    assignor
        Its name.
    metrics
        Those of its assignment (`lag_max`, `moved`, ...), and its forecast, `late_s` and
        `utilisation`; None where it failed.
    outcome
        What the assignor says of its result, if anything.
    error
        Why it failed; None where it did not.
    frontier
        What fewer moves would have bought: (moves, lateness at the horizon in seconds), ascending
        by moves; empty where the assignor has none.
    """

    assignor: str
    metrics: Mapping[str, Any] | None = None
    outcome: str | None = None
    error: str | None = None
    frontier: tuple[tuple[int, float], ...] = ()


def candidate_of(row: Mapping[str, Any]) -> SnapshotCandidate:
    """Return the candidate that a row of the table of candidates describes."""
    return SnapshotCandidate(
        assignor=row["assignor"],
        metrics=None if row["error"] else {name: row[name] for name in _FIGURES},
        outcome=row["outcome"],
        error=row["error"],
        frontier=tuple((point["moves"], point["late_s"]) for point in row["frontier"] or ()),
    )


def improvement(observed: Mapping[str, Any], predicted: Mapping[str, Any]) -> float | None:
    """Return the share by which forecast lateness falls; negative where it rises.

    Returns
    -------
    None: one of the forecasts is not known, as of plans that no analysis made.

    Examples
    --------
    >>> improvement({"late_s": 200.0}, {"late_s": 150.0})
    0.25
    """
    return _fall(observed.get("late_s"), predicted.get("late_s"))


def lightening(observed: Mapping[str, Any], predicted: Mapping[str, Any]) -> float:
    """Return the share by which the heaviest member's lag falls; negative where it rises.

    Examples
    --------
    >>> lightening({"lag_max": 200}, {"lag_max": 150})
    0.25
    """
    return _fall(float(observed["lag_max"]), float(predicted["lag_max"])) or 0.0


def _fall(before: float | None, after: float | None) -> float | None:
    if before is None or after is None:
        return None
    if before == 0:
        return 0.0 if after == 0 else float("-inf")
    return (before - after) / before
