"""How the benchmark judges a plan that was taken back: the same world with the plan, and without.

Belongs here: the benchmark's judge. Does not: taking back (`tests/fairlead/simulation`).
"""

from dataclasses import replace

import pytest

from benchmarks.loop import CADENCE
from benchmarks.misled import MISLED
from benchmarks.taken_back import judge
from fairlead.simulation.catalogue import scenario
from fairlead.simulation.loop import Handover, Run
from fairlead.simulation.registry import PLANNER, simulate
from fairlead.simulation.scenario import Scenario
from fairlead.simulation.world import World

pytestmark = pytest.mark.long
SEED = 1


def planned(what: Scenario, hours: float) -> Run:
    return simulate(World.of(what, seed=SEED, hours=hours), what, PLANNER, CADENCE)


def test_plan_that_did_harm_was_taken_back_rightly() -> None:
    """Partitions are late for longer with the plan than without it."""
    what = MISLED["crowded-skew"](SEED)
    done = planned(what, hours=2.0)
    plan, back = done.handovers[:2]
    assert (plan.planned, back.back) == (True, True)
    at_s, with_it, without = judge(what, done, 1)
    assert at_s == back.at_s
    assert with_it > without


def test_plan_that_cured_was_taken_back_wrongly() -> None:
    """Whoever takes back what helps makes partitions late that the plan would have kept in time."""
    what = scenario("skew")
    done = planned(what, hours=2.0)
    plan = done.handovers[0]
    back = Handover(
        plan.at_s + 900, planned=False, back=True, moved=plan.moved, moved_rate=0, paused=0
    )
    _, with_it, without = judge(what, replace(done, handovers=(plan, back)), 1)
    assert with_it < without
