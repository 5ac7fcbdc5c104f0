"""aiokafka's `getmany()`: all that was fetched is handed out at once."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from benchmarks.simulation.reading import ScenarioReading
from benchmarks.simulation.scenario import Scenario
from benchmarks.simulation.traffic import Traffic
from benchmarks.simulation.world import ScenarioWorld

Consume = Callable[..., Any]
CLIENT = "aiokafka getmany"


def test_commits_are_ahead_by_what_the_application_holds(alone: Consume) -> None:
    """Lag reads what arrived since the batch, however much of it is still to be processed."""
    ran = alone(CLIENT, behind_s=31.0, per_s=72.0, record_bytes=123.0)
    lag = ran.waiting[60] - ran.ahead[1]
    assert ran.ahead[1].sum() == pytest.approx(6200 - 72 * 15, rel=0.05)
    assert lag.sum() == pytest.approx(200 * 15, rel=0.1)


def test_a_small_batch_comes_before_each_large_one(alone: Consume) -> None:
    """Behind a batch stands what was there when it was handed out; then all that came meanwhile."""
    ran = alone(CLIENT, behind_s=31.0, per_s=72.0, record_bytes=123.0)
    jumps = ran.moves().sum(axis=1)
    large = jumps[jumps > 1000]
    assert (jumps > 0).sum() <= 3
    assert large[-1] == pytest.approx(200 * 88, rel=0.05)


def test_who_loses_a_partition_works_off_what_it_holds() -> None:
    """The next owner starts behind it, and both work on the same partition for a while."""
    scenario = Scenario(
        "two",
        "two members, one partition",
        "steady",
        Traffic(used=0.5),
        speeds=(20.0, 100.0),
        topics=(1,),
        client=CLIENT,
    )
    world = ScenarioWorld.of(scenario, hours=0.5, step_s=1.0)
    reading = ScenarioReading(world)
    reading.owner = np.array([0], np.int32)
    reading.run(0, 600)
    waits, given = reading.waiting[600, 0], reading.delivered(600)[0]
    held = given - (world.ends[600, 0] - waits)
    assert held > 20 * 10
    reading.take_over(np.array([True]), 600, np.floor(reading.delivered(600)).astype(np.int64))
    reading.owner = np.array([1], np.int32)
    reading.run(600, 700)
    assert reading.waiting[600, 0] == pytest.approx(waits, abs=1)
    read = reading.waiting[600:700, 0] + world.arrivals[600:700, 0] - reading.waiting[601:701, 0]
    both = int(held / 20)
    assert read[:both] == pytest.approx(20 + 100)
    assert read[both + 1 :] == pytest.approx(100)
