"""What a backtest comes to: figures by assignor, best first.

Belongs here: condensing the moments of replays, as a table for people and as data for programs.
Does not: replaying (`replay`, `spark`), nor drawing (`plot`).
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
from rich.table import Table

from fairlead.backtest.replay import OBSERVED
from fairlead.errors import GroupError
from fairlead.tables import slices

_HEADINGS: Final = (
    "heaviest / bound: mean",
    "p95",
    "max",
    "heaviest / mean",
    "moves",
    "plans",
    "held back",
)


@dataclass(frozen=True, eq=False)
class Course:
    """One assignor in charge from the first snapshot to the last, N snapshots.

    Parameters
    ----------
    assignor
        Its name, or `observed`.
    at
        N times, ascending.
    heaviest, mean, lower_bound
        Records behind, float64 of shape (N,): the heaviest member's, the mean, and what no
        assignment can go below.
    moves
        Partitions moved by each snapshot, int64 of shape (N,).
    plans, held_back
        Plans published; snapshots at which a plan waited, since the policy did not approve it.
    """

    assignor: str
    at: tuple[datetime, ...]
    heaviest: npt.NDArray[np.float64]
    mean: npt.NDArray[np.float64]
    lower_bound: npt.NDArray[np.float64]
    moves: npt.NDArray[np.int64]
    plans: int
    held_back: int

    @property
    def over_bound(self) -> npt.NDArray[np.float64]:
        """The heaviest member's lag over the lower bound, shape (N,); 1 where there is no lag."""
        return _ratio(self.heaviest, self.lower_bound)

    @property
    def summary(self) -> dict[str, float | int]:
        """The figures of the table.

        Those of load leave the first snapshot out: it shows what an assignor that plans has found,
        not what it has done.
        """
        over_bound = self.over_bound[1:]
        return {
            "heaviest_over_bound_mean": float(over_bound.mean()),
            "heaviest_over_bound_p95": float(np.percentile(over_bound, 95)),
            "heaviest_over_bound_max": float(over_bound.max()),
            "heaviest_over_mean": float(_ratio(self.heaviest, self.mean)[1:].mean()),
            "moves": int(self.moves.sum()),
            "plans": self.plans,
            "held_back": self.held_back,
        }


@dataclass(frozen=True, eq=False)
class Report:
    """A backtest of a group.

    Parameters
    ----------
    group
        The consumer group.
    courses
        Best first: the lightest heaviest member on average, then the fewest moves.
    skipped
        Why snapshots were passed over, and how many for each reason.
    """

    group: str
    courses: tuple[Course, ...]
    skipped: Mapping[str, int]

    @classmethod
    def of(cls, group: str, moments: pa.Table) -> "Report":
        """Condense the moments of a backtest.

        Parameters
        ----------
        group
            The consumer group.
        moments
            Of the schema `fairlead.backtest.spark.MOMENTS`.

        Raises
        ------
        GroupError
            Fewer than two snapshots could be replayed; the message says why.
        """
        observed = moments.filter(pc.equal(moments["assignor"], OBSERVED))
        skipped = Counter(observed["skipped"].drop_null().to_pylist())
        usable = observed["skipped"].null_count
        if usable < 2:  # noqa: PLR2004 - one to take over at, one to see what came of it
            reasons = "; ".join(f"{reason} ({count:,})" for reason, count in skipped.most_common(3))
            raise GroupError(
                f"Group {group} has {usable} snapshot{'' if usable == 1 else 's'} that can be "
                f"replayed, two are needed{f'; skipped: {reasons}' if reasons else ''}"
            )
        replayed = moments.filter(pc.is_null(moments["skipped"]))
        courses = [_course(name, rows) for name, rows in slices(replayed, "assignor").items()]
        return cls(group, tuple(sorted(courses, key=_burden)), dict(skipped.most_common()))

    def as_dict(self) -> dict[str, Any]:
        """Return all figures, and the series they come from, ready for JSON."""
        at = self.courses[0].at
        return {
            "group": self.group,
            "from": at[0].isoformat(),
            "to": at[-1].isoformat(),
            "snapshots": len(at),
            "skipped": dict(self.skipped),
            "assignors": [
                {
                    "assignor": course.assignor,
                    **course.summary,
                    "series": {
                        "at": [moment.isoformat() for moment in course.at],
                        "heaviest": course.heaviest.astype(np.int64).tolist(),
                        "lower_bound": course.lower_bound.astype(np.int64).tolist(),
                        "moves": course.moves.tolist(),
                    },
                }
                for course in self.courses
            ],
        }

    def table(self) -> Table:
        """Return the figures as a table, best first."""
        at = self.courses[0].at
        first, last = (moment.isoformat(" ", "minutes")[:16] for moment in (at[0], at[-1]))
        table = Table(
            title=f"Group {self.group}: {len(at):,} snapshots, {first} to {last} UTC",
            title_justify="left",
        )
        table.add_column("in charge")
        for heading in _HEADINGS:
            table.add_column(heading, justify="right")
        for course in self.courses:
            *ratios, moves, plans, held_back = course.summary.values()
            by_plans = course.plans or course.held_back
            table.add_row(
                course.assignor,
                *(f"{ratio:.2f}" for ratio in ratios),
                f"{moves:,}",
                f"{plans:,}" if by_plans else "",
                f"{held_back:,}" if by_plans else "",
            )
        return table


def _course(assignor: str, rows: pa.Table) -> Course:
    rows = rows.sort_by("at")
    return Course(
        assignor=assignor,
        at=tuple(rows["at"].to_pylist()),
        heaviest=_floats(rows, "heaviest"),
        mean=_floats(rows, "mean"),
        lower_bound=_floats(rows, "lower_bound"),
        moves=rows["moved"].to_numpy(),
        plans=pc.sum(rows["published"]).as_py(),
        held_back=pc.sum(rows["held_back"]).as_py(),
    )


def _burden(course: Course) -> tuple[float, int, str]:
    return float(course.over_bound[1:].mean()), int(course.moves.sum()), course.assignor


def _floats(rows: pa.Table, name: str) -> npt.NDArray[np.float64]:
    values: npt.NDArray[np.float64] = rows[name].to_numpy().astype(np.float64)
    return values


def _ratio(
    values: npt.NDArray[np.float64], over: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """Divide; 1 where there is nothing to divide by."""
    return np.divide(values, over, out=np.ones_like(values), where=over > 0)
