"""The closed loop, side by side: `python -m benchmarks.loop [SCENARIO ...]`.

Belongs here: running every scenario with everybody who can decide, printing, and writing loop.json.
Does not: the goals (`loop_goals`), or the simulation itself (`fairlead.simulation`).
"""

import json
import platform
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.loop_goals import Goal, goals
from fairlead.simulation.catalogue import SCENARIOS, scenario
from fairlead.simulation.course import Course
from fairlead.simulation.loop import Cadence
from fairlead.simulation.registry import CONTROLLERS, PLANNER, simulate
from fairlead.simulation.world import World

RESULTS = Path(__file__).with_name("loop.json")
HOURS = 48.0
SEED = 1
CADENCE = Cadence()


def main(names: Sequence[str]) -> None:
    """Run all scenarios, or those that are named; only all of them are written down."""
    console = Console(width=160)
    began = time.perf_counter()
    rows: list[dict[str, Any]] = []
    for name in names or SCENARIOS:
        found = measure(name)
        rows += found
        console.print(course_table(found))
    reached = goals(rows)
    console.print(goal_table(reached))
    console.print(f"{sum(g.met for g in reached)} of {len(reached)} goals met")
    if not names:
        write(rows, reached, time.perf_counter() - began)


def measure(name: str) -> list[dict[str, Any]]:
    """Run a scenario with everybody who can decide."""
    world = World.of(scenario(name), seed=SEED, hours=HOURS)
    rows = []
    for decider in CONTROLLERS:
        began = time.perf_counter()
        course = Course.of(simulate(world, decider, CADENCE))
        row = {"scenario": name, "kind": world.scenario.kind, "events": world.scenario.events}
        seconds = round(time.perf_counter() - began, 2)
        rows.append({**row, "controller": decider, **course.as_dict(), "seconds": seconds})
    return rows


def course_table(rows: Sequence[dict[str, Any]]) -> Table:
    """Everybody in one scenario."""
    first = scenario(rows[0]["scenario"])
    table = Table(title=f"{first.name} ({first.kind}): {first.what}", title_justify="left")
    for heading in ("who decides", "late", "p99 s", "plans", "moves", "rebalances", "moved", "s"):
        table.add_column(heading, justify="left" if heading == "who decides" else "right")
    for row in rows:
        table.add_row(
            row["controller"],
            f"{row['late']:,.0f}",
            f"{row['p99_s']:,.0f}",
            f"{row['plans']:,}",
            f"{row['moves']:,}",
            f"{row['rebalances']:,}",
            f"{row['rebalance_moves']:,}",
            f"{row['seconds']:.1f}",
            style="bold" if row["controller"] == PLANNER else None,
        )
    return table


def goal_table(reached: Sequence[Goal]) -> Table:
    """Every goal, and whether it is met."""
    table = Table(title="Goals", title_justify="left")
    for heading in ("scenario", "goal", "planner", "at most", "met"):
        table.add_column(heading, justify="right" if heading in {"planner", "at most"} else "left")
    for goal in reached:
        table.add_row(
            goal.scenario,
            goal.what,
            f"{goal.value:,.1f}",
            f"{goal.limit:,.1f}",
            "yes" if goal.met else "NO",
            style=None if goal.met else "bold red",
        )
    return table


def write(rows: list[dict[str, Any]], reached: Sequence[Goal], seconds: float) -> None:
    """Write everything down, with how it was obtained."""
    document = {
        "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "how": {
            "command": "make bench-loop",
            "hours": HOURS,
            "seed": SEED,
            "step_s": 10.0,
            "look_s": CADENCE.look_s,
            "decision_s": CADENCE.decision_s,
            "pause_s": CADENCE.pause_s,
            "seconds": round(seconds, 1),
            "python": platform.python_version(),
            "numpy": np.__version__,
        },
        "goals": [goal.as_dict() for goal in reached],
        "courses": rows,
    }
    RESULTS.write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
