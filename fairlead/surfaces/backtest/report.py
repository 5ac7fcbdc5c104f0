"""The result of a backtest: the figures of each replayed assignor, the best first.

Belongs here: summarising replays, as a table for people and as data for programs. Belongs
elsewhere: replaying (`replay`, `replays`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from assignors.registry import LAG_BLIND
from fairlead.common.words import plural
from fairlead.domain.candidate_figures import OBSERVED
from fairlead.errors import GroupError
from fairlead.surfaces.backtest.replay import RECORDED

if TYPE_CHECKING:
    import pandas as pd

#: Values of `in_charge` that are not assignors: measured lag, and a replay of the real owners.
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
    """A replay from the first sample to the last.

    Parameters
    ----------
    in_charge
        The name of an assignor, `OBSERVED` (a replay with the group's own assignments), or
        `RECORDED` (figures measured in the samples).
    stretches
        One row for each interval between two samples, by time, with the columns
        `fairlead.surfaces.backtest.replays.STRETCHES`.
    """

    in_charge: str
    stretches: "pd.DataFrame"

    @property
    def by_plans(self) -> bool:
        """Whether `in_charge` is an assignor that makes plans."""
        return self.in_charge not in LAG_BLIND | set(HISTORY)

    def total(self, column: str) -> float:
        """Return the sum of a figure over the whole replay."""
        return float(self.stretches[column].sum())

    @property
    def summary(self) -> dict[str, float | int]:
        """The figures of the replay."""
        worst_s = self.stretches["worst_s"]
        return {
            "over_objective_partition_minutes": round(self.total("over_objective_s") / 60, 1),
            "worst_p95_s": round(float(worst_s.quantile(0.95)), 1),
            "worst_max_s": round(float(worst_s.max()), 1),
            "moves": int(self.total("moved")),
            "plans": int(self.total("published")),
            "held_back": int(self.total("held_back")),
            "downtime_partition_minutes": round(self.total("downtime_s") / 60, 1),
        }


@dataclass(frozen=True, eq=False)
class Report:
    """A backtest of a group.

    Parameters
    ----------
    group
        The consumer group.
    courses
        First `RECORDED` and `OBSERVED`, then the assignors, best first. The shorter the time for
        which partitions were behind by more than the objective, the better the assignor; among
        equals, the assignor with the fewest moves is best.
    skipped
        Maps each reason why samples could not be replayed to the number of these samples.
    """

    group: str
    courses: tuple[ReplayedCourse, ...]
    skipped: Mapping[str, int]

    @classmethod
    def of(cls, group: str, rows: "pd.DataFrame") -> "Report":
        """Summarise a backtest.

        Parameters
        ----------
        group
            The consumer group.
        rows
            Rows with the columns `fairlead.surfaces.backtest.replays.STRETCHES`.

        Raises
        ------
        GroupError
            Fewer than two samples could be replayed; the message has the reasons.
        """
        counts = rows.loc[rows["in_charge"] == RECORDED, "skipped"].value_counts()
        skipped = {str(reason): int(count) for reason, count in counts.items()}
        replayed = rows[rows["skipped"].isna()]
        if replayed.empty:
            reasons = "; ".join(f"{reason} ({count:,})" for reason, count in skipped.items())
            raise GroupError(
                f"Group {group} has fewer than two samples that can be replayed"
                f"{f'; skipped: {reasons}' if reasons else ''}"
            )
        courses = [
            ReplayedCourse(str(name), its.sort_values("at"))
            for name, its in replayed.groupby("in_charge")
        ]
        return cls(group, tuple(sorted(courses, key=_burden)), skipped)

    @property
    def at(self) -> list[datetime]:
        """Times of all samples but the first."""
        return list(self.courses[0].stretches["at"])

    def as_dict(self) -> dict[str, Any]:
        """Return all figures, in total and at each sample, as values that JSON allows."""
        at = [moment.isoformat() for moment in self.at]
        return {
            "group": self.group,
            "to": at[-1],
            "samples": len(at) + 1,
            "skipped": dict(self.skipped),
            "in_charge": [
                {
                    "name": course.in_charge,
                    **course.summary,
                    "series": {
                        "at": at,
                        "over_objective_s": course.stretches["over_objective_s"].tolist(),
                        "worst_s": course.stretches["worst_s"].tolist(),
                        "moves": course.stretches["moved"].astype(int).tolist(),
                    },
                }
                for course in self.courses
            ],
        }

    @property
    def title(self) -> str:
        """The heading of the table: the group, the number of samples, and the time of the last."""
        until = f"{self.at[-1]:%Y-%m-%d %H:%M} UTC"
        return f"Group {self.group}: {len(self.at) + 1:,} samples, until {until}"

    def rows(self) -> list[dict[str, Any]]:
        """Return the figures as rows of a table, with the keys of `COLUMNS`."""
        return [
            {"in_charge": course.in_charge}
            | {name: round(value) for name, value in course.summary.items()}
            | ({} if course.by_plans else {"plans": None, "held_back": None})
            for course in self.courses
        ]

    def saved(self) -> str | None:
        """Describe what the group would have gained from the best assignor that makes plans.

        None: no replayed assignor makes plans.
        """
        best = next((course for course in self.courses if course.by_plans), None)
        if best is None:
            return None
        observed = next(course for course in self.courses if course.in_charge == OBSERVED)
        saved = would_have_saved(
            observed.total("over_objective_s"),
            best.total("over_objective_s"),
            int(best.total("published")),
            best.total("downtime_s"),
        )
        return f"{best.in_charge} {saved}"


def would_have_saved(
    over_objective_s: float, planned_s: float, plans: int, downtime_s: float
) -> str:
    """Describe how much less time partitions were behind in a replay with plans, and the cost.

    Parameters
    ----------
    over_objective_s, planned_s
        How long partitions were behind by more than the objective, summed over partitions: with
        the group's own assignments, and with plans.
    plans, downtime_s
        Number of plans; the downtime that they cause, in seconds, summed over partitions.

    Examples
    --------
    >>> print(would_have_saved(3_000, 540, 3, 90))
    would have saved 41 of 50 partition-minutes behind, with 3 plans and 1.5 partition-minutes down
    >>> print(would_have_saved(0, 0, 0, 0))
    would have saved nothing: no partition was behind in the replay
    """
    if not over_objective_s and not planned_s:
        return "would have saved nothing: no partition was behind in the replay"
    saved, total = (over_objective_s - planned_s) / 60, over_objective_s / 60
    what = f"saved {saved:,.0f} of" if saved >= 0 else f"added {-saved:,.0f} to"
    return (
        f"would have {what} {total:,.0f} partition-minutes behind, with {plural(plans, 'plan')}"
        f" and {downtime_s / 60:,.1f} partition-minutes down"
    )


def _burden(course: ReplayedCourse) -> tuple[int, float, float, str]:
    place = HISTORY.index(course.in_charge) if course.in_charge in HISTORY else len(HISTORY)
    return place, course.total("over_objective_s"), course.total("moved"), course.in_charge
