"""Automatic rollback in simulations: only plans that make a group worse are rolled back."""

from dataclasses import replace

import pytest

from benchmarks.misled import MISLED
from benchmarks.simulation.churn import MemberChange
from benchmarks.simulation.costs import Expensive, TrueCosts
from benchmarks.simulation.loop import TakenBack
from benchmarks.simulation.registry import PLANNER, simulate
from benchmarks.simulation.scenario import Scenario
from benchmarks.simulation.world import ScenarioWorld
from fairlead.simulation.loop import Handover
from tests.lengths import form

pytestmark = pytest.mark.long
SEED = 1


def handovers(scenario: Scenario, hours: float, planner: str = PLANNER) -> tuple[Handover, ...]:
    """Return the plans and rebalances of a simulated group, with the planner `planner`."""
    world = ScenarioWorld.of(scenario, seed=SEED, hours=hours)
    return simulate(world, planner).handovers


@pytest.mark.parametrize("name", form(short=["crowded-skew"], long=[*MISLED]))
def test_harmful_plan_is_rolled_back(name: str) -> None:
    """All moves of a harmful plan are reverted within 20 minutes, and no other plan follows."""
    plan, back, *later = handovers(MISLED[name](SEED), hours=5.0 if name == "turned" else 0.8)
    assert plan.planned
    assert isinstance(back, TakenBack)
    assert (back.planned, back.moved) == (False, plan.moved)
    assert back.at_s - plan.at_s < 1200
    assert later == []


def test_plan_that_puts_another_member_behind_is_rolled_back() -> None:
    """A harmful plan is rolled back even if an earlier plan was rolled back hours before.

    The two plans make different members fall behind.
    """
    first, _, plan, back = handovers(MISLED["turned"](SEED), hours=20.5)
    assert plan.planned
    assert isinstance(back, TakenBack)
    assert back.moved == plan.moved
    assert plan.at_s - first.at_s > 6 * 3600
    assert back.at_s - plan.at_s < 1200


def test_a_plan_before_a_restart_is_not_rolled_back() -> None:
    """If a member restarts after a plan, the plan is not rolled back: speeds cannot be compared."""
    misled = MISLED["crowded-skew"](SEED)
    restart = (MemberChange(1000.0, 3, joins=False), MemberChange(1100.0, 3, joins=True))
    done = handovers(replace(misled, changes=restart), hours=0.5)
    assert [handover.planned for handover in done[:3]] == [True, False, False]
    assert not any(isinstance(handover, TakenBack) for handover in done)


def test_a_slowdown_of_all_members_is_no_regression() -> None:
    """If all partitions become expensive right after a plan, the plan is not rolled back."""
    skew = replace(MISLED["crowded-skew"](SEED), spoils=())
    costs = TrueCosts(expensive=(Expensive(3.0, from_s=930.0),))
    done = handovers(replace(skew, costs=costs), hours=0.6)
    assert done[0].planned
    assert not any(isinstance(handover, TakenBack) for handover in done)
