"""The effect of each rule and constant of the analysis: `python -m benchmarks.ablation [NAME ...]`.

Belongs here: switching one rule off, or changing one constant by a third, and counting wrong
diagnoses. Belongs elsewhere: groups from public reports (`stories`), random groups
(`random_scenarios`), and closed loops, in which plans change a simulated group (`loop`).

To switch off a rule, its function is replaced with one that never applies the rule. Constants are
all numbers at module level. Each constant is raised and lowered by a third in every module that
imports it. Closed loops take minutes per change, so `--loops` runs them only for rules, not for
constants.
"""

import ast
import importlib
import json
import pkgutil
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import numpy as np

from benchmarks import harness
from benchmarks.loop import CADENCE, SEED
from benchmarks.loop import RESULTS as LOOPS
from benchmarks.loop_goals import goals
from benchmarks.random_scenarios import random_scenario
from benchmarks.scoring import mark as mark_group
from benchmarks.simulation.catalogue import SCENARIOS
from benchmarks.simulation.registry import PLANNER, simulate
from benchmarks.simulation.run_figures import RunFigures
from benchmarks.simulation.world import ScenarioWorld
from benchmarks.stories.__main__ import KINDS
from benchmarks.stories.__main__ import mark as mark_story
from fairlead.domain import analysis

RESULTS: Final = Path(__file__).with_name("ablation.json")
#: For each kind of random groups: the argument `real` of `random_scenario`, and number of groups.
GROUPS: Final = {"plain groups": (False, 6), "real groups": (True, 3)}
#: Scenarios that closed loops omit because they are the slowest.
_SLOW: Final = frozenset(("wander", "hundreds", "heavy-chunks"))
_HOURS: Final = 48.0
_THIRD: Final = 1.0 / 3.0


def _no_partition(of: Any, *_: Any, **__: Any) -> Any:
    return np.zeros(getattr(of, "series", of).partitions, dtype=bool)


#: Constants that are not tuned: unit conversions; limits for floats, for memory and for the length
#: of messages; Kafka's defaults; and values that are part of the interface of `fairlead decide`.
LIMITS: Final = frozenset(
    (
        *("AUTO_COMMIT_S", "DAY_S", "WEEK_S", "_GIGABYTE", "NINE_IN_TEN", "_MEDIAN_CHI2"),
        *("LARGEST_RATE", "_LEAST", "_MOST", "_STEP", "_ANY", "ROUNDS", "NEAR", "_EQUAL", "SLACK"),
        *("AT_ONCE", "_SIZES", "NAMED", "MOST_PLANS"),
        *("SLACK_S", "_WIDE", "STAYS_S", "_ROUNDING_S", "_EXACT_S", "_UNKNOWN"),
        *("SAMPLES_NEEDED", "MOSTLY", "_AUTO_COMMIT_S"),  # computed from other constants
    )
)

#: Name of a rule -> (module, name of the rule's function, function that replaces it).
RULES: Final[dict[str, tuple[str, str, Callable[..., Any]]]] = {
    "producers' batches": ("commits", "_in_batches", _no_partition),
    "throttled partitions": (
        "stalled",
        "throttled_partitions",
        lambda habits, _: (_no_partition(habits), np.zeros(habits.series.partitions)),
    ),
    "stuck partitions": ("stalled", "stuck_partitions", _no_partition),
    "records of a commit": (
        "commit_habits",
        "_records_per_commit",
        lambda series: np.zeros(series.partitions),
    ),
    "silent members": (
        "stalled",
        "silent_members",
        lambda habits: np.zeros(len(habits.series.members), bool),
    ),
    "foreign commits": ("stalled", "foreign_partitions", _no_partition),
    "lag at rest": (
        "commit_habits",
        "at_rest",
        lambda series: np.zeros(series.partitions, np.int64),
    ),
    "spare members who are in time": ("candidates", "_harmless_moves", lambda *_: None),
}


@dataclass(frozen=True)
class Variant:
    """One change: a rule switched off, or a constant times a factor. With neither: no change."""

    name: str
    rule: str = ""
    module: str = ""
    factor: float = 1.0

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Apply the change to this process's modules; undo it at the end of the context."""
        module, name, instead = self.module, self.name.split()[0], None
        if self.rule:
            module, name, instead = RULES[self.rule]
        changed: list[ModuleType] = []
        value: Any = None
        if module:
            home = importlib.import_module(f"{analysis.__name__}.{module}")
            value = getattr(home, name)
            instead = instead or _scaled(value, self.factor)
            everywhere = [home] if self.rule else [home, *sys.modules.values()]
            changed = [its for its in everywhere if getattr(its, name, None) is value]
        for its in changed:
            setattr(its, name, instead)
        yield
        for its in changed:
            setattr(its, name, value)


def constants() -> Iterator[tuple[str, str, Any]]:
    """Yield module, name and value of each number at module level in `fairlead.domain.analysis`."""
    for found in pkgutil.iter_modules(analysis.__path__):
        module = importlib.import_module(f"{analysis.__name__}.{found.name}")
        for line in ast.parse(Path(str(module.__file__)).read_text()).body:
            if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name):
                value = getattr(module, line.target.id, None)
                if type(value) in {int, float}:
                    yield found.name, line.target.id, value


def _scaled(value: Any, factor: float) -> Any:
    if isinstance(value, int):
        return max(round(value * factor), value + 1 if factor > 1 else 0)
    return value * factor


def variants() -> list[Variant]:
    """Return all variants; the first changes nothing."""
    found = [Variant("nothing"), *(Variant(name, rule=name) for name in RULES)]
    for module, name, _ in constants():
        if name in LIMITS:
            continue
        found += [
            Variant(f"{name} x {factor:.2f}", module=module, factor=factor)
            for factor in (1.0 + _THIRD, 1.0 - _THIRD)
        ]
    return found


def measure(variant: Variant, *, loops: bool) -> dict[str, Any]:
    """Apply a change; return the stories diagnosed wrongly, and shares of wrong diagnoses.

    Stories are groups from public reports. Each share is that of one kind of random groups.

    With `loops`, also return the results of the closed loops (`_loops`).
    """
    with variant.applied():
        row: dict[str, Any] = {
            "stories": [
                story.name for kind in KINDS.values() for story in kind if mark_story(story).faults
            ]
        }
        for kind, (real, count) in GROUPS.items():
            marks = [
                marked
                for number in range(count)
                for marked in mark_group(random_scenario(number, real=real), plans=False, seed=SEED)
            ]
            row[kind] = round(sum(not marked.right for marked in marks) / max(len(marks), 1), 4)
        return row | (_loops() if loops else {})


def _loops() -> dict[str, Any]:
    """Run the closed loops except the slowest; return the goals not met, and `over_objective`.

    `over_objective`: how many minutes partitions had a time lag above the objective, summed over
    all partitions and scenarios.
    """
    others = json.loads(LOOPS.read_text())["courses"]
    courses = []
    for name, scenario in SCENARIOS.items():
        if name in _SLOW:
            continue
        world = ScenarioWorld.of(scenario, seed=SEED, hours=_HOURS)
        figures = RunFigures.of(simulate(world, PLANNER, CADENCE)).as_dict()
        of = {"scenario": name, "kind": scenario.kind, "events": scenario.events}
        courses.append({**of, "controller": PLANNER, **figures})
        courses += [
            its for its in others if its["scenario"] == name and its["controller"] != PLANNER
        ]
    return {
        "goals": [f"{goal.scenario}: {goal.what}" for goal in goals(courses) if not goal.met],
        "over_objective": round(
            sum(its["over_objective"] for its in courses if its["controller"] == PLANNER), 1
        ),
    }


def main() -> None:
    """Measure all changes, or those whose names start with NAME, and update ablation.json."""
    options = harness.parser(__doc__)
    options.add_argument("names", nargs="*", metavar="NAME", help="beginnings of names")
    options.add_argument("--processes", type=int, default=2, help="how many at once")
    options.add_argument("--loops", action="store_true", help="also closed loops, for rules")
    with harness.measuring(options, RESULTS) as bench:
        begins = tuple(bench.options.names)
        every = variants()
        chosen = [each for each in every if each.name.startswith(begins or "")]
        rows = json.loads(RESULTS.read_text())["rows"] if RESULTS.exists() else {}
        with ProcessPoolExecutor(bench.options.processes) as pool:
            started = [
                pool.submit(measure, each, loops=bench.options.loops and not each.module)
                for each in chosen
            ]
            for each, row in zip(chosen, started, strict=True):
                rows[each.name] = rows.get(each.name, {}) | row.result()
                bench.log(each.name, rows[each.name])
        rows = {each.name: rows[each.name] for each in every if each.name in rows}
        names = {name for _, name, _ in constants()}
        bench.write({"tuning": len(names - LIMITS), "limits": len(names & LIMITS), "rows": rows})
        bench.show(
            "what is wrong if",
            ("change", "stories", *GROUPS, "goals"),
            [
                (
                    name,
                    len(row["stories"]),
                    *(f"{row[kind]:.1%}" for kind in GROUPS),
                    len(row["goals"]) if "goals" in row else "",
                )
                for name, row in rows.items()
            ],
        )


if __name__ == "__main__":
    main()
