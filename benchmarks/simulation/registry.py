"""Controllers by name; running a controller in a scenario."""

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Final

from benchmarks.simulation.controllers import ByAssignor
from benchmarks.simulation.loop import ScenarioRun, run
from benchmarks.simulation.oracle import Lagging, Minimal
from benchmarks.simulation.planner import Planner
from benchmarks.simulation.scenario import Scenario
from benchmarks.simulation.world import ScenarioWorld
from fairlead.domain.analysis.rules import Rules
from fairlead.simulation.controllers import Controller
from fairlead.simulation.loop import Cadence

NEVER_PLANNED: Final = "never planned"
STICKY: Final = "cooperative-sticky"
PUBLISHED_RULE: Final = "lag-aware at rebalances"
PUBLISHED_RULE_ALWAYS: Final = "lag-aware"
PLANNER: Final = "planner"
PLANNER_REPORTS: Final = "planner, reports"
ORACLE: Final = "oracle"

_Maker = Callable[[Scenario, Cadence], Controller]


def _planner(scenario: Scenario, cadence: Cadence, *, reports: bool = False) -> Controller:
    return Planner(
        Rules(move_downtime_s=cadence.move_downtime_s), eager=scenario.eager, reports=reports
    )


def _oracle(scenario: Scenario, cadence: Cadence) -> Controller:
    """Return the oracle for a scenario: `Lagging` for changing ones, `Minimal` for all others."""
    return Lagging(cadence.decision_s) if scenario.kind == "changing" else Minimal()


CONTROLLERS: Mapping[str, _Maker] = MappingProxyType(
    {
        NEVER_PLANNED: lambda *_: ByAssignor("range"),
        STICKY: lambda *_: ByAssignor("sticky", at_start="range"),
        PUBLISHED_RULE: lambda *_: ByAssignor("lag-aware", at_start="range"),
        PUBLISHED_RULE_ALWAYS: lambda *_: ByAssignor("lag-aware", at_start="range", plans=True),
        PLANNER: _planner,
        PLANNER_REPORTS: partial(_planner, reports=True),
        ORACLE: _oracle,
    }
)


def simulate(world: ScenarioWorld, name: str, cadence: Cadence | None = None) -> ScenarioRun:
    """Run the controller with this name in a world."""
    cadence = cadence or Cadence()
    return run(world, CONTROLLERS[name](world.scenario, cadence), cadence)
