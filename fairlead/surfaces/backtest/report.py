"""The result of a backtest: figures per assignor in charge, best first.

Belongs here: condensing replays, as a table for people and as data for programs. Does not:
replaying (`replay`, `spark`), nor drawing (`plot`).
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from assignors.registry import LAG_BLIND
from fairlead.common.tables import slices
from fairlead.common.words import plural
from fairlead.domain.candidate_figures import OBSERVED
from fairlead.errors import GroupError
from fairlead.surfaces.backtest.replay import RECORDED

#: Values of `in_charge` that are no assignors: the measured lag, and a replay of the real owners.
HISTORY: Final = (RECORDED, OBSERVED)
#: Columns of the table, with their headings.
COLUMNS: Final = {
    "in_charge": "in charge",
    "over_objective_partition_minutes": "behind (min)",
    "worst_p95_s": "p95 (s)",
    "worst_max_s": "max (s)",
    "moves": "moves",
    "plans": "plans",
    "held_back": "refused",
}


@dataclass(frozen=True, eq=False)
class ReplayedCourse:
    """A replay from the first sample to the last: N stretches between samples.

    Parameters
    ----------
    in_charge
        An assignor, `observed` or `recorded`.
    at
        When each stretch ended, N times, ascending.
    over_objective_s
        Partition-seconds beyond the objective in each stretch, float64 of shape (N,).
    worst_s
        Largest time lag of a partition in each stretch, seconds, float64 of shape (N,).
    moves
        Partitions moved in each stretch, int64 of shape (N,).
    plans, held_back
        Plans published; decisions whose plan the policy did not approve.
    downtime_s
        Partition-seconds without consumption because of these plans.
    """

    in_charge: str
    at: tuple[datetime, ...]
    over_objective_s: npt.NDArray[np.float64]
    worst_s: npt.NDArray[np.float64]
    moves: npt.NDArray[np.int64]
    plans: int
    held_back: int
    downtime_s: float

    @property
    def by_plans(self) -> bool:
        """Whether plans changed the owners; else each rebalance did."""
        return self.in_charge not in LAG_BLIND | set(HISTORY)

    @property
    def summary(self) -> dict[str, float | int]:
        """The figures of the replay."""
        return {
            "over_objective_partition_minutes": round(float(self.over_objective_s.sum()) / 60, 1),
            "worst_p95_s": round(float(np.percentile(self.worst_s, 95)), 1),
            "worst_max_s": round(float(self.worst_s.max()), 1),
            "moves": int(self.moves.sum()),
            "plans": self.plans,
            "held_back": self.held_back,
            "downtime_partition_minutes": round(self.downtime_s / 60, 1),
        }


@dataclass(frozen=True, eq=False)
class Report:
    """A backtest of a group.

    Parameters
    ----------
    group
        The consumer group.
    courses
        `recorded` and `observed`, then the assignors, best first: by time behind, then by moves.
    skipped
        Reason to number of samples that could not be replayed.
    """

    group: str
    courses: tuple[ReplayedCourse, ...]
    skipped: Mapping[str, int]

    @classmethod
    def of(cls, group: str, stretches: pa.Table) -> "Report":
        """Summarise the stretches of a backtest.

        Parameters
        ----------
        group
            The consumer group.
        stretches
            Of the schema `fairlead.surfaces.backtest.spark.STRETCHES`.

        Raises
        ------
        GroupError
            Fewer than two samples could be replayed; the message has the reasons.
        """
        recorded = stretches.filter(pc.equal(stretches["in_charge"], RECORDED))
        skipped = Counter(recorded["skipped"].drop_null().to_pylist())
        if not recorded["skipped"].null_count:
            reasons = "; ".join(f"{reason} ({count:,})" for reason, count in skipped.most_common(3))
            raise GroupError(
                f"Group {group} has fewer than two samples that can be replayed"
                f"{f'; skipped: {reasons}' if reasons else ''}"
            )
        replayed = stretches.filter(pc.is_null(stretches["skipped"]))
        courses = [_course(name, rows) for name, rows in slices(replayed, "in_charge").items()]
        return cls(group, tuple(sorted(courses, key=_burden)), dict(skipped.most_common()))

    def as_dict(self) -> dict[str, Any]:
        """Return all figures, and the series they come from, ready for JSON."""
        at = self.courses[0].at
        return {
            "group": self.group,
            "to": at[-1].isoformat(),
            "samples": len(at) + 1,
            "skipped": dict(self.skipped),
            "in_charge": [
                {
                    "name": course.in_charge,
                    **course.summary,
                    "series": {
                        "at": [moment.isoformat() for moment in course.at],
                        "over_objective_s": course.over_objective_s.tolist(),
                        "worst_s": course.worst_s.tolist(),
                        "moves": course.moves.tolist(),
                    },
                }
                for course in self.courses
            ],
        }

    @property
    def title(self) -> str:
        """The heading of the table: group, samples and end."""
        at = self.courses[0].at
        last = at[-1].isoformat(" ", "minutes")[:16]
        return f"Group {self.group}: {len(at) + 1:,} samples, until {last} UTC"

    def rows(self) -> list[dict[str, Any]]:
        """Return the figures as rows of a table, with the keys of `COLUMNS`."""
        return [
            {"in_charge": course.in_charge}
            | {name: round(value) for name, value in course.summary.items()}
            | ({} if course.by_plans else {"plans": None, "held_back": None})
            for course in self.courses
        ]

    def saved(self) -> str | None:
        """Describe what the best planning assignor would have saved; None: no assignor plans."""
        best = next((course for course in self.courses if course.by_plans), None)
        if best is None:
            return None
        observed = next(course for course in self.courses if course.in_charge == OBSERVED)
        over_objective_s, planned_s = (
            float(course.over_objective_s.sum()) for course in (observed, best)
        )
        saved = would_have_saved(over_objective_s, planned_s, best.plans, best.downtime_s)
        return f"{best.in_charge} {saved}"


def would_have_saved(
    over_objective_s: float, planned_s: float, plans: int, downtime_s: float
) -> str:
    """Describe what plans would have saved, and at what cost.

    Parameters
    ----------
    over_objective_s, planned_s
        Partition-seconds beyond the objective, with the owners there were and under the plans.
    plans, downtime_s
        Number of plans, and the partition-seconds of downtime that they cause.

    Examples
    --------
    >>> would_have_saved(30_000, 5_280, 3, 90)
    'would have saved 412 of 500 partition-minutes behind, with 3 plans and 1.5 of downtime'
    >>> would_have_saved(0, 0, 0, 0)
    'would have saved nothing: no partition was behind in the replay'
    """
    if not over_objective_s and not planned_s:
        return "would have saved nothing: no partition was behind in the replay"
    saved, total = (over_objective_s - planned_s) / 60, over_objective_s / 60
    what = f"saved {saved:,.0f} of" if saved >= 0 else f"added {-saved:,.0f} to"
    return (
        f"would have {what} {total:,.0f} partition-minutes behind, with {plural(plans, 'plan')}"
        f" and {downtime_s / 60:,.1f} of downtime"
    )


def _course(in_charge: str, rows: pa.Table) -> ReplayedCourse:
    rows = rows.sort_by("at")
    return ReplayedCourse(
        in_charge=in_charge,
        at=tuple(rows["at"].to_pylist()),
        over_objective_s=rows["over_objective_s"].to_numpy(),
        worst_s=rows["worst_s"].to_numpy(),
        moves=rows["moved"].to_numpy(),
        plans=pc.sum(rows["published"]).as_py(),
        held_back=pc.sum(rows["held_back"]).as_py(),
        downtime_s=pc.sum(rows["downtime_s"]).as_py(),
    )


def _burden(course: ReplayedCourse) -> tuple[int, float, int, str]:
    place = HISTORY.index(course.in_charge) if course.in_charge in HISTORY else len(HISTORY)
    return place, float(course.over_objective_s.sum()), int(course.moves.sum()), course.in_charge
