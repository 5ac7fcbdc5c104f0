"""Landau's workload: the planner beside their rules, at the same number of consumers.

Belongs here: which deltas, rules and keys of a policy are compared. Does not: the workload and the
rules themselves (`benchmarks.simulation`).

A group has as many consumers as Modified Worst Fit uses on average where it may use as many as it
likes, rounded up; `objective` is 2 s, and everybody looks and decides every 30 s.
"""

from dataclasses import asdict
from itertools import product
from math import ceil
from typing import Any, Final

from benchmarks.bin_packing import RULES, BinPacking
from benchmarks.landau import (
    CADENCE,
    CAPACITY,
    PACKED,
    STEP_S,
    TURN_S,
    Score,
    landau,
    members_used,
)
from benchmarks.loop_goals import Goal
from benchmarks.simulation.controllers import ByAssignor
from benchmarks.simulation.loop import run
from benchmarks.simulation.oracle import Lagging
from benchmarks.simulation.planner import Planner
from benchmarks.simulation.world import ScenarioWorld
from fairlead.domain.analysis.rules import Rules
from fairlead.simulation.controllers import Controller

DELTAS: Final = (5.0, 15.0, 25.0)
TURNS: Final = 250
PLENTY: Final = 32
OBJECTIVE_S: Final = 2.0
DEFAULTS: Final = "planner, objective 2 s"
_HORIZONS_S: Final = (30.0, 60.0, 300.0)
_TARGETS: Final = (0.8, 0.95)
_BANDS: Final = (0.01, 0.1, 0.25)
_HOURS: Final = TURNS * TURN_S / 3600


def measure(seed: int) -> list[dict[str, Any]]:
    """Run everybody at each delta."""
    return [row for delta in DELTAS for row in _measure(delta, seed)]


def _measure(delta: float, seed: int) -> list[dict[str, Any]]:
    plenty = ScenarioWorld.of(landau(delta, PLENTY), seed=seed, hours=_HOURS, step_s=STEP_S)
    members = ceil(members_used(run(plenty, BinPacking("MWF", PACKED), CADENCE)))
    world = ScenarioWorld.of(landau(delta, members), seed=seed, hours=_HOURS, step_s=STEP_S)
    deciders: dict[str, Controller] = {
        "range": ByAssignor("range"),
        "cooperative-sticky": ByAssignor("sticky"),
        **{rule: BinPacking(rule, PACKED) for rule in RULES},
        **{f"oracle, band {band:g}": Lagging(TURN_S, band=band) for band in _BANDS},
        DEFAULTS: Planner(Rules(objective_s=OBJECTIVE_S, move_downtime_s=CADENCE.move_downtime_s)),
    }
    for horizon_s, target_utilisation in product(_HORIZONS_S, _TARGETS):
        rules = Rules(
            objective_s=OBJECTIVE_S,
            horizon_s=horizon_s,
            target_utilisation=target_utilisation,
            move_downtime_s=CADENCE.move_downtime_s,
        )
        deciders[
            f"planner, horizon {horizon_s:.0f} s, target utilisation {target_utilisation:g}"
        ] = Planner(rules)
    used = float(world.rates.sum(axis=1).mean() / (members * CAPACITY))
    common = {"delta": delta, "members": members, "used": round(used, 3)}
    return [
        {**common, "controller": name, **asdict(Score.of(run(world, decider, CADENCE)))}
        for name, decider in deciders.items()
    ]


def goals(rows: list[dict[str, Any]]) -> list[Goal]:
    """Hold the planner against Modified Worst Fit: by its defaults, and at its best point."""
    found = []
    for delta in dict.fromkeys(row["delta"] for row in rows):
        by = {row["controller"]: row for row in rows if row["delta"] == delta}
        ours, worst_fit = by[DEFAULTS], by["MWF"]
        half = worst_fit["r_score"] / 2
        points = [row for who, row in by.items() if who.startswith("planner")]
        cheap = [row["p99_s"] for row in points if row["r_score"] <= half]
        name = f"landau-{delta:g}"
        found += [
            Goal(name, "MWF's 99th percentile, s", ours["p99_s"], worst_fit["p99_s"]),
            Goal(name, "half of MWF's R-score", ours["r_score"], half),
            Goal(
                name,
                "both, at the best of the horizons tried",
                min(cheap or [row["p99_s"] for row in points]),
                worst_fit["p99_s"],
            ),
        ]
    return found
