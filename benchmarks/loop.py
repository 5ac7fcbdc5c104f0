"""The planner compared with other controllers, in closed loops: `python -m benchmarks.loop [NAME]`.

In a closed loop, a controller plans for a simulated group, its plans change the group, and its next
plans depend on the changed group.

Belongs here: running every scenario with every controller, and writing loop.json. Belongs
elsewhere: the goals (`loop_goals`), tables and the plot (`loop_report`), diagnoses
(`loop_diagnosis`, `loop_flips`), the accuracy of predictions (`loop_predictions`), the simulation
itself (`benchmarks.simulation`).

NAMEs are scenarios, `diagnosis`, `flips` or `predictions`. Without NAME, everything is run and
written to loop.json. `--report` writes tables and plot again from that file.
"""

import json
import time
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import numpy as np

from benchmarks import (
    harness,
    loop_diagnosis,
    loop_flips,
    loop_predictions,
    loop_report,
)
from benchmarks.loop_goals import goals
from benchmarks.simulation.catalogue import SCENARIOS
from benchmarks.simulation.registry import CONTROLLERS, simulate
from benchmarks.simulation.run_figures import RunFigures
from benchmarks.simulation.world import ScenarioWorld
from fairlead.simulation.loop import Cadence

RESULTS: Final = Path(__file__).with_name("loop.json")
HOURS: Final = 48.0
SEED: Final = 1
CADENCE: Final = Cadence()
_OTHERS: Final = ("diagnosis", "flips", "predictions")


def main() -> None:
    """Run everything and write the results, or only run and print the named parts."""
    options = harness.parser(__doc__)
    options.add_argument(
        "names", nargs="*", choices=[[], *SCENARIOS, *_OTHERS], metavar="NAME", help="of a scenario"
    )
    options.add_argument("--report", action="store_true", help="draw loop.json again")
    with harness.measuring(options, RESULTS) as bench:
        if bench.options.report:
            loop_report.write(json.loads(RESULTS.read_text()))
            return
        chosen = bench.options.names
        began, names = time.perf_counter(), chosen or (*SCENARIOS, *_OTHERS)
        courses: list[dict[str, Any]] = []
        with ProcessPoolExecutor() as pool:
            for rows in pool.map(measure, [name for name in names if name not in _OTHERS]):
                courses += rows
                loop_report.show_courses(bench, rows)
            flips = pool.submit(loop_flips.measure, SEED) if "flips" in names else None
            diagnoses = loop_diagnosis.measure(SEED, pool.map) if "diagnosis" in names else []
            predictions = loop_predictions.measure(SEED, pool.map) if "predictions" in names else []
            flip = [] if flips is None else flips.result()
        reached = [
            *goals(courses),
            *loop_diagnosis.goals(diagnoses),
            *loop_flips.goals(flip),
            *loop_predictions.goals(predictions),
        ]
        document = {
            "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
            "how": how(time.perf_counter() - began),
            "goals": [goal.as_dict() for goal in reached],
            "courses": courses,
            "diagnosis": diagnoses,
            "flips": flip,
            "predictions": predictions,
        }
        loop_report.show(bench, document)
        if not chosen:
            bench.write(document)
            if bench.keeps:
                loop_report.write(document)


def measure(name: str) -> list[dict[str, Any]]:
    """Run a scenario with every controller; return a row of figures for each."""
    what = SCENARIOS[name]
    world = ScenarioWorld.of(what, seed=SEED, hours=HOURS)
    rows = []
    for decider in CONTROLLERS:
        began = time.perf_counter()
        course = RunFigures.of(simulate(world, decider, CADENCE))
        row = {"scenario": name, "kind": what.kind, "events": what.events}
        seconds = round(time.perf_counter() - began, 2)
        rows.append({**row, "controller": decider, **course.as_dict(), "seconds": seconds})
    return rows


def how(seconds: float) -> dict[str, Any]:
    """Describe how loop.json was measured: command, settings, and the duration `seconds`."""
    return {
        "command": "make bench-loop",
        "hours": HOURS,
        "seed": SEED,
        "step_s": 10.0,
        "sample_s": CADENCE.sample_s,
        "decision_s": CADENCE.decision_s,
        "move_downtime_s": CADENCE.move_downtime_s,
        "diagnosis": {"seed": SEED, "groups": loop_diagnosis.GROUPS},
        "flips": {"seed": SEED, "groups": loop_flips.GROUPS},
        "seconds": round(seconds, 1),
        "numpy": np.__version__,
    }


if __name__ == "__main__":
    main()
