"""Which plans are taken back: `python -m benchmarks.taken_back [NAME ...]`.

Belongs here: the planner in the scenarios made to mislead it, beside never planning, and what it
takes back in every other one. Does not: the scenarios (`fairlead.simulation.misled`, `catalogue`).

Names are those of scenarios; only a run of all of them is written down.
"""

import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from benchmarks import harness
from benchmarks.loop import CADENCE, HOURS, SEED
from benchmarks.loop_goals import Goal
from fairlead.simulation.catalogue import SCENARIOS
from fairlead.simulation.course import RunFigures
from fairlead.simulation.misled import MISLED
from fairlead.simulation.registry import NEVER_PLANNED, PLANNER, simulate
from fairlead.simulation.world import World

RESULTS: Final = Path(__file__).with_name("taken_back.json")
#: Lateness of plans made wrong on purpose, of that of never planning, at most.
WORSE: Final = 1.3


def main() -> None:
    """Run everything, or what is named."""
    options = harness.parser(__doc__)
    options.add_argument("names", nargs="*", choices=[[], *MISLED, *SCENARIOS], metavar="NAME")
    with harness.measuring(options, RESULTS) as bench:
        names = bench.options.names or [*MISLED, *SCENARIOS]
        began = time.perf_counter()
        with ProcessPoolExecutor() as pool:
            rows = list(pool.map(measure, names))
        reached = [goal for row in rows for goal in goals(row)]
        columns = ("scenario", "late", "never_planned_late", "plans", "taken_back")
        bench.show("Taken back", columns, [[row.get(name, "") for name in columns] for row in rows])
        missed = [
            [goal.scenario, goal.what, goal.value, goal.limit] for goal in reached if not goal.met
        ]
        bench.show("Missed", ("scenario", "goal", "is", "at most"), missed)
        if not bench.options.names:
            bench.write(
                {
                    "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
                    "how": {
                        "command": "python -m benchmarks.taken_back",
                        "hours": HOURS,
                        "seed": SEED,
                        "seconds": round(time.perf_counter() - began, 1),
                    },
                    "goals": [goal.as_dict() for goal in reached],
                    "rows": rows,
                }
            )


def measure(name: str) -> dict[str, Any]:
    """Run a scenario with the planner; one that misleads it without any plan, too."""
    misled = name in MISLED
    what = replace(MISLED[name](SEED), name=name) if misled else SCENARIOS[name]
    world = World.of(what, seed=SEED, hours=HOURS)
    course = RunFigures.of(simulate(world, what, PLANNER, CADENCE), warm_up_s=0.0)
    row = {"scenario": name, "misled": misled, "late": course.late, "plans": course.plans}
    row["taken_back"] = course.taken_back
    if misled:
        never = RunFigures.of(simulate(world, what, NEVER_PLANNED, CADENCE), warm_up_s=0.0)
        row["never_planned_late"] = never.late
    return row


def goals(row: dict[str, Any]) -> list[Goal]:
    """Hold a scenario's row against its goals."""
    if not row["misled"]:
        return [Goal(row["scenario"], "plans taken back", row["taken_back"], 0)]
    most = WORSE * row["never_planned_late"]
    return [
        Goal(row["scenario"], "1.3 times never planning", row["late"], most),
        Goal(row["scenario"], "no plan taken back", float(row["taken_back"] == 0), 0),
    ]


if __name__ == "__main__":
    main()
