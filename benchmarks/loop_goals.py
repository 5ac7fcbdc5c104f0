"""Goals of the planner in the closed loop.

Belongs here: the goals, and whether figures meet them. Belongs elsewhere: measuring the figures
(`loop`).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from benchmarks.simulation.registry import (
    NEVER_PLANNED,
    ORACLE,
    PLANNER,
    PLANNER_REPORTS,
    PUBLISHED_RULE,
    PUBLISHED_RULE_ALWAYS,
    STICKY,
)

Row = Mapping[str, Any]
Rows = Mapping[str, Row]
#: Minutes, summed over all partitions. Every goal for the time above the objective allows at least
#: this: 0.01 % of the 42 hours of 100 partitions.
_NOTHING = 25.0


@dataclass(frozen=True)
class Goal:
    """A figure of the planner, and its allowed maximum."""

    scenario: str
    what: str
    value: float
    limit: float

    @property
    def met(self) -> bool:
        """Return whether the goal is met."""
        return self.value <= self.limit

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as a dict, with `met`."""
        return {**asdict(self), "met": self.met}


def goals(rows: Sequence[Mapping[str, Any]]) -> list[Goal]:
    """Return the goals for every scenario in which the planner was run."""
    found: list[Goal] = []
    for name in dict.fromkeys(row["scenario"] for row in rows):
        by = {row["controller"]: row for row in rows if row["scenario"] == name}
        for planner, title in ((PLANNER, name), (PLANNER_REPORTS, with_reports(name))):
            if planner in by:
                ours = by[planner]
                found += [Goal(title, *goal) for goal in _OF_KIND[ours["kind"]](ours, by)]
    return found


def with_reports(name: str) -> str:
    """Return the name of a measurement in which the planner reads consumers' reports of work."""
    return f"{name}, reports"


def _healthy(ours: Row, _: Rows) -> Iterator[tuple[str, float, float]]:
    yield "no plan", ours["plans"], 0
    yield "partitions behind", ours["over_objective"], 0


def _steady(ours: Row, by: Rows) -> Iterator[tuple[str, float, float]]:
    never = by[NEVER_PLANNED]["over_objective"]
    yield "1 % of never planned", ours["over_objective"], 0.01 * never
    yield "plans", ours["plans"], 8 if ours["events"] > 1 else 4
    yield "3 times the oracle's moves + 20", ours["moves"], 3 * by[ORACLE]["moves"] + 20
    for other in (STICKY, PUBLISHED_RULE):
        yield (
            f"a tenth of {other}",
            ours["over_objective"],
            max(by[other]["over_objective"] / 10, _NOTHING),
        )


def _changing(ours: Row, by: Rows) -> Iterator[tuple[str, float, float]]:
    yield (
        "2 times the oracle",
        ours["over_objective"],
        max(2 * by[ORACLE]["over_objective"], _NOTHING),
    )
    yield "2 plans an event", ours["plans"], 2 * ours["events"]
    for other in (STICKY, PUBLISHED_RULE, PUBLISHED_RULE_ALWAYS):
        yield (
            f"ahead of {other}",
            ours["over_objective"],
            max(by[other]["over_objective"], _NOTHING),
        )


def _hopeless(ours: Row, by: Rows) -> Iterator[tuple[str, float, float]]:
    yield "no worse than never planned", ours["over_objective"], by[NEVER_PLANNED]["over_objective"]
    yield "plans", ours["plans"], 4


_OF_KIND = {
    "healthy": _healthy,
    "steady": _steady,
    "changing": _changing,
    "hopeless": _hopeless,
}
