"""Scenarios in which plans put a group further behind, for reasons that no earlier sample shows.

Belongs here: these scenarios by name. Belongs elsewhere: all other scenarios
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

#: Map from each of ten members to its partitions under `range`.
_BY_RANGE: Final = {member: tuple(range(10 * member, 10 * member + 10)) for member in range(10)}


def _expensive_elsewhere(share: float) -> Scenario:
    """Return a scenario in which a partition slows down every owner but its owner under `range`.

    A slow member has only `share` of its normal speed.
    """
    spoils = tuple(Spoil(mine, member, share) for member, mine in _BY_RANGE.items())
    what = f"`skew`; members that read others' partitions under `range` have {share:.0%} of speed"
    return replace(SCENARIOS["skew"], name=f"dear-abroad-{share:.0%}", what=what, spoils=spoils)


def _crowded(name: str) -> Scenario:
    """Return a scenario in which a member with more than ten partitions has half of its speed."""
    crowd = Spoil(tuple(range(100)), None, 0.5, most=10)
    what = f"`{name}`; a member that reads more than ten partitions has half of its speed"
    return replace(SCENARIOS[name], name=f"crowded-{name}", what=what, spoils=(crowd,))


def _turned(seed: int) -> Scenario:
    """Return a scenario in which the moved partitions get more records right after the first plan.

    At the same time, the partitions that stay with the previous owners get fewer records. Without
    the plan, the previous owners would be overloaded a little. With the plan, the new owners are
    overloaded by two thirds.
    """
    before = SCENARIOS["pair"]
    world = ScenarioWorld.of(before, seed=seed, hours=12.0)
    (_, old), (planned_s, new) = simulate(world, PLANNER).owners[:2]
    givers = set(old[old != new].tolist())
    rates, surges = world.rates[0], []
    for member, speed in enumerate(before.speeds):
        gone, stayed = (
            np.flatnonzero((old == member) & moved) for moved in (old != new, old == new)
        )
        for partitions, share in ((gone, 0.7), (stayed, 0.4 if member in givers else 0.95)):
            if partitions.size:
                factor = share * speed / float(rates[partitions].sum())
                surges.append(Surge(tuple(partitions.tolist()), factor, planned_s + 60.0))
    what = "`pair`; right after the first plan load turns against it"
    traffic = replace(before.traffic, surges=tuple(surges))
    return replace(before, name="turned", what=what, traffic=traffic)


#: Name -> function that returns the scenario for a seed. The seed matters only for `turned`: there,
#: load shifts to the partitions that the first plan under this seed has moved.
MISLED: Final[Mapping[str, Callable[[int], Scenario]]] = MappingProxyType(
    {
        "dear-abroad-50": lambda _: _expensive_elsewhere(0.5),
        "dear-abroad-70": lambda _: _expensive_elsewhere(0.7),
        "crowded-skew": lambda _: _crowded("skew"),
        "crowded-unequal": lambda _: _crowded("unequal"),
        "turned": _turned,
    }
)
