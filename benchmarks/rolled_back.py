"""Whether the planner rolls back only harmful plans: `python -m benchmarks.rolled_back [NAME ...]`.

Belongs here: comparing the planner with never planning in scenarios that mislead the planner, and
checking rollbacks in all other scenarios. Belongs elsewhere: the scenarios (`benchmarks.misled`,
`catalogue`).

NAMEs are scenarios. Results are written only if all scenarios were run.

Plans can also do harm in the other scenarios: before costs are known, a plan can move expensive
partitions to members without room. To check a rollback in such a scenario, the scenario is run
again twice. In the first run, the plan that was rolled back is the planner's last plan. In the
second run, the planner stops just before this plan. If the time above the objective is not longer
in the first run than in the second, the plan did no harm, so the rollback was wrong. The time above
the objective is measured from the plan until one `horizon` after the rollback.
"""

import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from itertools import repeat
from pathlib import Path
from typing import Any, Final

import numpy as np

from benchmarks import harness
from benchmarks.loop import CADENCE, HOURS, SEED
from benchmarks.loop_goals import Goal
from benchmarks.misled import MISLED
from benchmarks.simulation.catalogue import SCENARIOS
from benchmarks.simulation.loop import ScenarioRun, TakenBack, run
from benchmarks.simulation.planner import Planner
from benchmarks.simulation.registry import NEVER_PLANNED, PLANNER, simulate
from benchmarks.simulation.run_figures import OBJECTIVE_S, RunFigures
from benchmarks.simulation.world import ScenarioWorld
from fairlead.domain.analysis.rules import Rules
from fairlead.simulation.controllers import START, Moment
from fairlead.simulation.world import Int32

RESULTS: Final = Path(__file__).with_name("rolled_back.json")
#: Goal for scenarios that mislead the planner: maximum of the time for which partitions have a time
#: lag above the objective, as a multiple of this time without plans.
WORSE: Final = 1.3


def main() -> None:
    """Run all scenarios or the named ones, print, and write rolled_back.json if all were run."""
    options = harness.parser(__doc__)
    options.add_argument("names", nargs="*", choices=[[], *MISLED, *SCENARIOS], metavar="NAME")
    options.add_argument("--hours", type=float, default=HOURS, help="default: %(default)s")
    options.add_argument("--seed", type=int, default=SEED, help="default: %(default)s")
    with harness.measuring(options, RESULTS) as bench:
        names = bench.options.names or [*MISLED, *SCENARIOS]
        began = time.perf_counter()
        with ProcessPoolExecutor() as pool:
            hours, seed = repeat(bench.options.hours), repeat(bench.options.seed)
            rows = list(pool.map(measure, names, hours, seed))
        reached = [goal for row in rows for goal in goals(row)]
        columns = (
            "scenario",
            "over_objective",
            "never_planned_over_objective",
            "plans",
            "rolled_back",
            "wrongly",
        )
        cells = [[row.get(name, "") for name in columns] for row in rows]
        bench.show("Rolled back", columns, cells)
        missed = [
            [goal.scenario, goal.what, goal.value, goal.limit] for goal in reached if not goal.met
        ]
        bench.show("Missed", ("scenario", "goal", "is", "at most"), missed)
        if not bench.options.names:
            bench.write(
                {
                    "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
                    "how": {
                        "command": "python -m benchmarks.rolled_back",
                        "hours": bench.options.hours,
                        "seed": bench.options.seed,
                        "seconds": round(time.perf_counter() - began, 1),
                    },
                    "goals": [goal.as_dict() for goal in reached],
                    "rows": rows,
                }
            )


class Settled(Planner):
    """A planner that makes no plans after a given time; if `without`, also none at that time."""

    def __init__(self, planned_at: float, *, without: bool, eager: bool) -> None:
        super().__init__(Rules(move_downtime_s=CADENCE.move_downtime_s), eager=eager)
        self._planned_at, self._without = planned_at, without

    def plan(self, moment: Moment) -> Int32 | None:
        """Return the planner's plan, or None after the last plan."""
        last = np.nextafter(self._planned_at, 0) if self._without else self._planned_at
        return super().plan(moment) if moment.at <= last else None

    def take_back(self, moment: Moment) -> Int32 | None:
        """Roll back plans as the planner does, but only before the given time."""
        return super().take_back(moment) if moment.at < self._planned_at else None


def measure(name: str, hours: float, seed: int) -> dict[str, Any]:
    """Run a scenario with the planner; a scenario of `MISLED` is also run without plans."""
    misled = name in MISLED
    what = replace(MISLED[name](seed), name=name) if misled else SCENARIOS[name]
    world = ScenarioWorld.of(what, seed=seed, hours=hours)
    done = simulate(world, PLANNER, CADENCE)
    course = RunFigures.of(done, warm_up_s=0.0)
    row = {
        "scenario": name,
        "misled": misled,
        "over_objective": course.over_objective,
        "plans": course.plans,
    }
    row["rolled_back"] = course.rolled_back
    if misled:
        never = RunFigures.of(simulate(world, NEVER_PLANNED, CADENCE), warm_up_s=0.0)
        return {**row, "never_planned_over_objective": never.over_objective}
    analysed = [
        analyse(done, place)
        for place, step in enumerate(done.handovers)
        if isinstance(step, TakenBack)
    ]
    wrongly = sum(with_it <= without for _, with_it, without in analysed)
    return {**row, "wrongly": wrongly, "at_s_late_with_and_without": analysed}


def analyse(done: ScenarioRun, place: int) -> tuple[float, float, float]:
    """Check a rollback, given its index in `handovers`.

    Returns three values: when the rollback happened, in seconds from the start; and how long
    partitions had a time lag above the objective, with the plan and without it, in minutes summed
    over all partitions.
    """
    world, back, eager = done.world, done.handovers[place], done.world.scenario.eager
    planned_s = next(step.at_s for step in done.handovers[place::-1] if step.planned)
    until_s = back.at_s + Rules().horizon_s
    first, last = (round(at_s / world.step_s) for at_s in (planned_s, until_s))
    over_objective = []
    for without in (False, True):
        planner = Settled(START.timestamp() + planned_s, without=without, eager=eager)
        lags = run(world, planner, CADENCE).time_lags()[first : last + 1]
        over_objective.append(round(float((lags > OBJECTIVE_S).sum() * world.step_s / 60), 1))
    return back.at_s, over_objective[0], over_objective[1]


def goals(row: dict[str, Any]) -> list[Goal]:
    """Return the goals of a scenario's row."""
    if not row["misled"]:
        return [Goal(row["scenario"], "plans rolled back wrongly", row["wrongly"], 0)]
    most = WORSE * row["never_planned_over_objective"]
    return [
        Goal(row["scenario"], "1.3 times never planning", row["over_objective"], most),
        Goal(row["scenario"], "no plan rolled back", float(row["rolled_back"] == 0), 0),
    ]


if __name__ == "__main__":
    main()
