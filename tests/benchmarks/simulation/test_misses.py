"""Looks that miss a broker's partitions, or all owners."""

from typing import Any

import numpy as np
import pytest

from benchmarks.simulation.loop import run
from benchmarks.simulation.misses import Misses
from benchmarks.simulation.scenario import Scenario
from benchmarks.simulation.world import ScenarioWorld
from fairlead.domain.analysis.looks import NONE


def test_looks_miss_as_often_as_is_said() -> None:
    """One broker at a time, every sixth partition; owners all at once."""
    misses = Misses(leader=0.2, coordinator=0.1)
    unseen, ownerless = misses.of(np.random.default_rng(1), 5000, 12)
    assert unseen.any(axis=1).mean() == pytest.approx(0.2, abs=0.02)
    assert set(unseen.sum(axis=1).tolist()) == {0, 2}
    assert ownerless.mean() == pytest.approx(0.1, abs=0.02)


def test_what_a_look_misses_is_not_known(scripted: Any) -> None:
    """The end is unknown and the commit is not; nobody owns anything in a look without owners."""
    scenario = Scenario(
        "missing", "looks miss", "healthy", topics=(12,), misses=Misses(leader=0.3, coordinator=0.3)
    )
    script = scripted()
    ran = run(ScenarioWorld.of(scenario, hours=1), script)
    looks = script.looks[-1]
    steps = np.rint((looks.at - looks.at[0]) / ran.world.step_s).astype(int) + 6
    assert np.array_equal(looks.end == NONE, ran.world.unseen[steps])
    assert (looks.committed >= 0).all()
    assert np.array_equal((looks.owner < 0).all(axis=1), ran.world.ownerless[steps])
    assert (looks.end == NONE).any()
    assert (looks.owner < 0).any()


def test_by_default_looks_miss_nothing() -> None:
    """Every partition, every owner."""
    world = ScenarioWorld.of(Scenario("whole", "whole looks", "healthy"), hours=1)
    assert not world.unseen.any()
    assert not world.ownerless.any()
