"""The closed loop, side by side: `python -m benchmarks.loop [SCENARIO | landau | diagnosis ...]`.

Belongs here: running every scenario with everybody who can decide, and writing loop.json. Does not:
the goals (`loop_goals`), tables and the plot (`loop_report`), Landau's workload (`loop_landau`),
diagnoses (`loop_diagnosis`), or the simulation itself (`fairlead.simulation`).

Without names everything is run, and written down; `--report` draws it again from loop.json.
"""

import json
import platform
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import numpy as np
from rich.console import Console

from benchmarks import loop_diagnosis, loop_landau, loop_report
from benchmarks.landau import STEP_S, TURN_S
from benchmarks.loop_goals import goals
from fairlead.simulation.catalogue import SCENARIOS, scenario
from fairlead.simulation.course import Course
from fairlead.simulation.loop import Cadence
from fairlead.simulation.registry import CONTROLLERS, simulate
from fairlead.simulation.world import World

RESULTS: Final = Path(__file__).with_name("loop.json")
HOURS: Final = 48.0
SEED: Final = 1
CADENCE: Final = Cadence()
_OTHERS: Final = ("landau", "diagnosis")


def main(arguments: Sequence[str]) -> None:
    """Run everything, or what is named; only everything is written down."""
    console = Console(width=160)
    if arguments == ["--report"]:
        loop_report.write(json.loads(RESULTS.read_text()))
        return
    began = time.perf_counter()
    names = arguments or (*SCENARIOS, *_OTHERS)
    courses: list[dict[str, Any]] = []
    for name in names:
        if name not in _OTHERS:
            courses += measure(name)
            console.print(loop_report.course_table(courses[-len(CONTROLLERS) :]))
    reached = goals(courses)
    landau = loop_landau.measure(SEED) if "landau" in names else []
    reached += loop_landau.goals(landau)
    diagnoses = loop_diagnosis.measure(SEED) if "diagnosis" in names else []
    reached += loop_diagnosis.goals(diagnoses)
    document = {
        "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "how": how(time.perf_counter() - began),
        "goals": [goal.as_dict() for goal in reached],
        "courses": courses,
        "landau": landau,
        "diagnosis": diagnoses,
    }
    loop_report.print_rest(console, document)
    if not arguments:
        RESULTS.write_text(json.dumps(document, indent=1) + "\n")
        loop_report.write(document)


def measure(name: str) -> list[dict[str, Any]]:
    """Run a scenario with everybody who can decide."""
    what = scenario(name)
    world = World.of(what, seed=SEED, hours=HOURS)
    rows = []
    for decider in CONTROLLERS:
        began = time.perf_counter()
        course = Course.of(simulate(world, what, decider, CADENCE))
        row = {"scenario": name, "kind": what.kind, "events": what.events}
        seconds = round(time.perf_counter() - began, 2)
        rows.append({**row, "controller": decider, **course.as_dict(), "seconds": seconds})
    return rows


def how(seconds: float) -> dict[str, Any]:
    """Say how the figures were obtained."""
    return {
        "command": "make bench-loop",
        "hours": HOURS,
        "seed": SEED,
        "step_s": 10.0,
        "look_s": CADENCE.look_s,
        "decision_s": CADENCE.decision_s,
        "pause_s": CADENCE.pause_s,
        "landau": {
            "seed": SEED,
            "turns": loop_landau.TURNS,
            "turn_s": TURN_S,
            "step_s": STEP_S,
            "objective_s": loop_landau.OBJECTIVE_S,
        },
        "diagnosis": {"seed": SEED, "groups": loop_diagnosis.GROUPS},
        "seconds": round(seconds, 1),
        "python": platform.python_version(),
        "numpy": np.__version__,
    }


if __name__ == "__main__":
    main(sys.argv[1:])
