"""Rules of all clients for sharing time among partitions."""

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.simulation.costs import TrueCosts
from benchmarks.simulation.crawling import Crawl
from benchmarks.simulation.reading import ScenarioReading
from benchmarks.simulation.scenario import Scenario
from benchmarks.simulation.sharing.clients import CLIENTS
from benchmarks.simulation.traffic import Traffic
from benchmarks.simulation.world import ScenarioWorld

GROUP = Scenario(
    "group", "three members", "steady", speeds=(100.0, 50.0, 200.0), topics=(9,), record_bytes=5e3
)
OWNER = np.repeat(np.arange(3), 3).astype(np.int32)


def read_by(client: str, scenario: Scenario = GROUP) -> ScenarioReading:
    world = ScenarioWorld.of(replace(scenario, client=client), seed=5, hours=0.5)
    reading = ScenarioReading(world)
    reading.owner = OWNER
    reading.run(0, world.steps)
    return reading


@pytest.mark.parametrize("client", CLIENTS)
def test_all_time_is_used_while_anything_waits(client: str) -> None:
    """Members work at their speed, by the cost of records, and read only existing records."""
    scenario = replace(GROUP, traffic=Traffic(used=1.3, zipf=1.0), costs=TrueCosts(spread=0.7))
    reading = read_by(client, scenario)
    world = reading.world
    read = reading.waiting[:-1] + world.arrivals - reading.waiting[1:]
    assert reading.waiting.min() >= 0
    assert read.min() > -1e-6
    assert reading.waiting[-1].sum() > 1e4
    for member in range(3):
        mine = member == OWNER
        work = (read * world.costs)[:, mine].sum(axis=1)
        waits = reading.waiting[1:, mine].sum(axis=1) > 1e-3
        budget = world.speeds[0, member] * world.step_s
        assert work.max() <= budget * (1 + 1e-9)
        assert work[waits] == pytest.approx(budget, rel=1e-6)


@pytest.mark.parametrize("client", CLIENTS)
def test_a_throttled_partition_delays_no_other(client: str) -> None:
    """It is read at its limit beside the other partitions, and catches up after the limit."""
    crawl = Crawl(4, per_s=5.0, from_s=300.0, until_s=900.0)
    traffic = Traffic(used=0.6)
    scenario = replace(GROUP, speeds=(100.0,) * 3, traffic=traffic, crawling=(crawl,))
    reading = read_by(client, scenario)
    assert reading.waiting[90, 4] == pytest.approx((20 - 5) * 600, rel=0.05)
    assert not reading.waiting[:91, np.arange(9) != 4].any()
    assert not reading.waiting[-1].any()


@pytest.mark.parametrize("client", CLIENTS)
def test_a_moved_partition_is_read_from_its_commit(client: str) -> None:
    """Records that the last owner fetched but did not process are fetched again."""
    scenario = replace(GROUP, traffic=Traffic(used=1.2, zipf=1.0))
    world = ScenarioWorld.of(replace(scenario, client=client), seed=5, hours=0.5)
    reading = ScenarioReading(world)
    reading.owner = OWNER
    reading.run(0, 90)
    moved = OWNER == 1
    before = reading.waiting[90].copy()
    reading.take_over(moved, 90, np.floor(reading.delivered(90)).astype(np.int64))
    reading.owner = np.where(moved, 2, OWNER).astype(np.int32)
    reading.run(90, 180)
    assert reading.waiting[90] == pytest.approx(before, abs=1)
    read = reading.waiting[90:-1][:90] + world.arrivals[90:] - reading.waiting[91:181]
    assert read[:, moved].sum() > 0
    assert read.min() > -1e-6
