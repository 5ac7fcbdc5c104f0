"""Whoever can decide, by name, and running one of them in a scenario.

Belongs here: names, and what each stands for. Does not: what they do (`controllers`, `planner`,
`oracle`).
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from fairlead.domain.judgement.rules import Rules
from fairlead.simulation.catalogue import UnknownScenarioError
from fairlead.simulation.controllers import ByAssignor, Controller
from fairlead.simulation.loop import Cadence, Run, run
from fairlead.simulation.oracle import Lagging, Minimal
from fairlead.simulation.planner import Planner
from fairlead.simulation.scenario import Scenario
from fairlead.simulation.world import World

NEVER_PLANNED: Final = "never planned"
STICKY: Final = "cooperative-sticky"
PUBLISHED_RULE: Final = "lag-aware at rebalances"
PUBLISHED_RULE_ALWAYS: Final = "lag-aware"
PLANNER: Final = "planner"
ORACLE: Final = "oracle"

_Maker = Callable[[Scenario, Cadence, Rules], Controller]


def _oracle(scenario: Scenario, cadence: Cadence, _: Rules) -> Controller:
    """Pick the one that the scenario's goal speaks of."""
    return Lagging(cadence.decision_s) if scenario.kind == "changing" else Minimal()


CONTROLLERS: Mapping[str, _Maker] = MappingProxyType(
    {
        NEVER_PLANNED: lambda *_: ByAssignor("range"),
        STICKY: lambda *_: ByAssignor("sticky", at_start="range"),
        PUBLISHED_RULE: lambda *_: ByAssignor("lag-aware", at_start="range"),
        PUBLISHED_RULE_ALWAYS: lambda *_: ByAssignor("lag-aware", at_start="range", plans=True),
        PLANNER: lambda scenario, _, rules: Planner(rules, eager=scenario.eager),
        ORACLE: _oracle,
    }
)


def controller(
    name: str, scenario: Scenario, cadence: Cadence, rules: Rules | None = None
) -> Controller:
    """Return a new controller by its name.

    Raises
    ------
    UnknownScenarioError
        There is none of that name.
    """
    if name not in CONTROLLERS:
        known = ", ".join(CONTROLLERS)
        raise UnknownScenarioError(f"There is no controller {name}; there are {known}")
    return CONTROLLERS[name](scenario, cadence, rules or Rules(pause_s=cadence.pause_s))


def simulate(
    world: World,
    scenario: Scenario,
    name: str,
    cadence: Cadence | None = None,
    rules: Rules | None = None,
) -> Run:
    """Let a controller decide about a world that was drawn from a scenario.

    Raises
    ------
    UnknownScenarioError
        There is no controller of that name.
    """
    cadence = cadence or Cadence()
    return run(world, controller(name, scenario, cadence, rules), cadence)
