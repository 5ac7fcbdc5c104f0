"""Those who decide: Kafka's assignors, and those who know the truth."""

from dataclasses import replace

import numpy as np
import pytest

from assignors.problem import Problem
from benchmarks.simulation.catalogue import SCENARIOS
from benchmarks.simulation.oracle import FULL, fewest_moves
from benchmarks.simulation.registry import NEVER_PLANNED, ORACLE, STICKY, simulate
from benchmarks.simulation.run_figures import RunFigures
from benchmarks.simulation.world import ScenarioWorld


def course_of(name: str, controller: str, hours: float = 8) -> RunFigures:
    return RunFigures.of(simulate(ScenarioWorld.of(SCENARIOS[name], hours=hours), controller))


def test_range_leaves_the_skewed_group_as_late_as_known() -> None:
    """Two of ten members are overloaded for ever: 20 partitions late, the whole time."""
    course = course_of("skew", NEVER_PLANNED)
    assert course.late == 20 * 2 * 60
    assert course.plans == 0


def test_the_oracle_cures_it_with_few_moves() -> None:
    """Whoever knows rates and speeds moves six partitions once, and nobody is late."""
    course = course_of("skew", ORACLE)
    assert (course.late, course.plans, course.moves) == (0, 1, 6)


def test_the_oracle_moves_no_more_than_it_must() -> None:
    """Each overloaded member gives its heaviest until it fits: no plan could move fewer."""
    problem = Problem.of({"t": 6}, {"a": ["t"], "b": ["t"], "c": ["t"]})
    owner = np.array([0, 0, 0, 1, 1, 2], np.int32)
    rates = np.array([60.0, 40.0, 30.0, 20.0, 20.0, 10.0])
    plan = fewest_moves(replace(problem, owner=owner), rates, np.full(3, 100.0), FULL)
    assert plan is not None
    assert (plan != owner).sum() == 1
    assert np.bincount(plan, weights=rates).max() <= 99.0


def test_the_oracle_leaves_what_no_plan_can_help() -> None:
    """More arrives than all can do: there is nothing to move it to."""
    problem = Problem.of({"t": 2}, {"a": ["t"], "b": ["t"]})
    stands = replace(problem, owner=np.array([0, 1], np.int32))
    assert fewest_moves(stands, np.array([150.0, 90.0]), np.full(2, 100.0), FULL) is None


def test_sticky_keeps_what_members_have() -> None:
    """In a rolling restart, range moves nearly everything time and again; sticky does not."""
    moved = {name: course_of("restarts", name).rebalance_moves for name in (NEVER_PLANNED, STICKY)}
    assert moved[STICKY] * 4 < moved[NEVER_PLANNED]


def test_the_oracle_of_changing_load_is_ahead() -> None:
    """Hot partitions that wander make a group that follows them far less late."""
    late = {name: course_of("wander", name, hours=12).late for name in (NEVER_PLANNED, ORACLE)}
    assert late[ORACLE] * 4 < late[NEVER_PLANNED]


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_scenario_can_be_drawn(name: str) -> None:
    """Arrivals are finite, and about as many as the rates say."""
    world = ScenarioWorld.of(SCENARIOS[name], hours=1)
    assert world.arrivals.sum() == pytest.approx(world.rates.sum() * world.step_s, rel=0.05)
    assert (world.arrivals[~world.exists] == 0).all()
