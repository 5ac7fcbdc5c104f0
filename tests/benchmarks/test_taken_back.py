"""How the benchmark analyses a plan that was taken back: the same world with the plan, and without.

Belongs here: the benchmark's analyse. Does not: taking back (`tests/benchmarks/simulation`).
"""

from dataclasses import replace

import pytest

from benchmarks.loop import CADENCE
from benchmarks.misled import MISLED
from benchmarks.simulation.catalogue import SCENARIOS
from benchmarks.simulation.loop import ScenarioRun, TakenBack
from benchmarks.simulation.registry import PLANNER, simulate
from benchmarks.simulation.scenario import Scenario
from benchmarks.simulation.world import ScenarioWorld
from benchmarks.taken_back import analyse

pytestmark = pytest.mark.long
SEED = 1


def planned(what: Scenario, hours: float) -> ScenarioRun:
    return simulate(ScenarioWorld.of(what, seed=SEED, hours=hours), PLANNER, CADENCE)


def test_plan_that_did_harm_was_taken_back_rightly() -> None:
    """Partitions are late for longer with the plan than without it."""
    what = MISLED["crowded-skew"](SEED)
    done = planned(what, hours=2.0)
    plan, back = done.handovers[:2]
    assert plan.planned
    assert isinstance(back, TakenBack)
    at_s, with_it, without = analyse(done, 1)
    assert at_s == back.at_s
    assert with_it > without


def test_plan_that_cured_was_taken_back_wrongly() -> None:
    """Whoever takes back what helps makes partitions late that the plan would have kept in time."""
    what = SCENARIOS["skew"]
    done = planned(what, hours=2.0)
    plan = done.handovers[0]
    back = TakenBack(plan.at_s + 900, planned=False, moved=plan.moved, paused=0)
    _, with_it, without = analyse(replace(done, handovers=(plan, back)), 1)
    assert with_it < without
