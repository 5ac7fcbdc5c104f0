"""Controllers: Kafka's assignors, and the oracle."""

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
    """With true rates and speeds, one plan of six moves leaves no member behind."""
    course = course_of("skew", ORACLE)
    assert (course.over_objective, course.plans, course.moves) == (0, 1, 6)


def test_the_oracle_moves_no_more_than_it_must() -> None:
    """Each overloaded member gives away its heaviest partitions until it fits."""
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
