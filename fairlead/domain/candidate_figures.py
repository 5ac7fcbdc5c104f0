"""Candidates for a plan, with their figures.

Belongs here: the figures, and improvements from one assignment to another. Belongs elsewhere:
comparing candidates (`fairlead.domain.analysis`), storing decisions (`fairlead.store`), and
approval.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

Outcome = Literal["plan", "no change", "failed"]
#: In the table of candidates, the present assignment has this value in the column `assignor`.
OBSERVED: Final = "observed"
#: The fields of `assignors.metrics.Metrics`, repeated here so that commands do not import numpy.
METRICS: Final = (
    *("count_min", "count_max", "balance_score"),
    *("lag_max", "lag_mean", "lag_lower_bound", "gap"),
    *("kept", "moved", "placed", "topic_spread"),
)
#: Forecast figures; None for assignments that were not analysed.
FORECAST: Final = ("forecast_time_lag_s", "utilisation", "catch_up_s")
#: Rack traffic; None for groups without racks.
RACKS: Final = ("rack_gb_per_day", "rack_cost_per_day")
FIGURES: Final = (*METRICS, *FORECAST, *RACKS)


@dataclass(frozen=True)
class SnapshotCandidate:
    """The result of one assignor for a group of a snapshot.

    Parameters
    ----------
    assignor
        Name of the assignor.
    metrics
        The figures (`FIGURES`) of its assignment: metrics such as `lag_max` and `moved`, the
        forecast, and rack traffic; None if the assignor failed.
    outcome
        The assignor's sentence about its result, if any.
    error
        Why the assignor failed; None if it did not.
    """

    assignor: str
    metrics: Mapping[str, Any] | None = None
    outcome: str | None = None
    error: str | None = None


def candidate_of(row: Mapping[str, Any]) -> SnapshotCandidate:
    """Return the candidate in a row of the table of candidates."""
    return SnapshotCandidate(
        assignor=row["assignor"],
        metrics=None if row["error"] else {name: row[name] for name in FIGURES},
        outcome=row["outcome"],
        error=row["error"],
    )


def improvement(observed: Mapping[str, Any], predicted: Mapping[str, Any]) -> float | None:
    """Return the share by which the forecast lag falls; negative if it rises.

    Returns
    -------
    None if a forecast is not known, as for rollbacks.

    Examples
    --------
    >>> improvement({"forecast_time_lag_s": 200.0}, {"forecast_time_lag_s": 150.0})
    0.25
    """
    before, after = (each.get("forecast_time_lag_s") for each in (observed, predicted))
    if before is None or after is None:
        return None
    if before == 0:
        return 0.0 if after == 0 else float("-inf")
    return float((before - after) / before)
