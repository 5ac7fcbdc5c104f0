"""Those who decide: Kafka's assignors, and those who know the truth."""

from dataclasses import replace

import numpy as np
import pytest

from assignors.problem import Problem
from benchmarks.simulation.catalogue import SCENARIOS
from benchmarks.simulation.oracle import FULL, fewest_moves
from benchmarks.simulation.registry import ORACLE, simulate
from benchmarks.simulation.run_figures import RunFigures
from benchmarks.simulation.world import ScenarioWorld


def course_of(name: str, controller: str, hours: float = 8) -> RunFigures:
    return RunFigures.of(simulate(ScenarioWorld.of(SCENARIOS[name], hours=hours), controller))


def test_the_oracle_cures_it_with_few_moves() -> None:
    """Whoever knows rates and speeds moves six partitions once, and nobody is late."""
    course = course_of("skew", ORACLE)
    assert (course.over_objective, course.plans, course.moves) == (0, 1, 6)


def test_the_oracle_moves_no_more_than_it_must() -> None:
    """Each overloaded member gives its heaviest until it fits: no plan could move fewer."""
    problem = Problem.of({"t": 6}, {"a": ["t"], "b": ["t"], "c": ["t"]})
    owner = np.array([0, 0, 0, 1, 1, 2], np.int32)
    rates = np.array([60.0, 40.0, 30.0, 20.0, 20.0, 10.0])
    plan = fewest_moves(replace(problem, owner=owner), rates, np.full(3, 100.0), FULL)
    assert plan is not None
    assert (plan != owner).sum() == 1
    assert np.bincount(plan, weights=rates).max() <= 99.0


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_scenario_can_be_drawn(name: str) -> None:
    """Arrivals are finite, and about as many as the rates say."""
    world = ScenarioWorld.of(SCENARIOS[name], hours=1)
    assert world.arrivals.sum() == pytest.approx(world.rates.sum() * world.step_s, rel=0.05)
    assert (world.arrivals[~world.exists] == 0).all()
