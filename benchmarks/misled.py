"""Scenarios in which plans make it worse, on purpose: what no look at a group before them can tell.

Belongs here: these scenarios by name. Does not: those in which plans help, or do no harm
(`benchmarks.simulation.catalogue`).
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final

import numpy as np

from benchmarks.simulation.catalogue import SCENARIOS
from benchmarks.simulation.registry import PLANNER, simulate
from benchmarks.simulation.scenario import Scenario, Spoil
from benchmarks.simulation.traffic import Surge
from benchmarks.simulation.world import ScenarioWorld

#: Of ten members, what each reads under `range`.
_AT_HOME: Final = {member: tuple(range(10 * member, 10 * member + 10)) for member in range(10)}


def _dear_abroad(share: float) -> Scenario:
    """Every partition's records are dear to whoever is not its owner under `range`."""
    spoils = tuple(Spoil(mine, member, share) for member, mine in _AT_HOME.items())
    what = f"`skew`; whoever reads what is another's under range does {share:.0%} of its speed"
    return replace(SCENARIOS["skew"], name=f"dear-abroad-{share:.0%}", what=what, spoils=spoils)


def _crowded(name: str) -> Scenario:
    """Whoever gets more partitions than it had becomes slow."""
    crowd = Spoil(tuple(range(100)), None, 0.5, most=10)
    what = f"`{name}`; whoever reads more than ten partitions does half of its speed"
    return replace(SCENARIOS[name], name=f"crowded-{name}", what=what, spoils=(crowd,))


def _turned(seed: int) -> Scenario:
    """Load turns right after the first plan: what moved grows, and what its receivers had.

    What its givers keep goes quiet. The owners before the plan would be a little overloaded, and
    those after it are by two thirds.
    """
    before = SCENARIOS["pair"]
    world = ScenarioWorld.of(before, seed=seed, hours=12.0)
    (_, old), (planned_s, new) = simulate(world, PLANNER).owners[:2]
    givers = set(old[old != new].tolist())
    rates, surges = world.rates[0], []
    for member, speed in enumerate(before.speeds):
        gone, kept = (np.flatnonzero((old == member) & moved) for moved in (old != new, old == new))
        for partitions, share in ((gone, 0.7), (kept, 0.4 if member in givers else 0.95)):
            if partitions.size:
                factor = share * speed / float(rates[partitions].sum())
                surges.append(Surge(tuple(partitions.tolist()), factor, planned_s + 60.0))
    what = "`pair`; right after the first plan load turns against it"
    traffic = replace(before.traffic, surges=tuple(surges))
    return replace(before, name="turned", what=what, traffic=traffic)


MISLED: Final[Mapping[str, Callable[[int], Scenario]]] = MappingProxyType(
    {
        "dear-abroad-50": lambda _: _dear_abroad(0.5),
        "dear-abroad-70": lambda _: _dear_abroad(0.7),
        "crowded-skew": lambda _: _crowded("skew"),
        "crowded-unequal": lambda _: _crowded("unequal"),
        "turned": _turned,
    }
)
"""Scenarios by name, each drawn for a seed: load turns on the plan that the seed leads to."""
