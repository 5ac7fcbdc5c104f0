"""Members that come and go."""

import numpy as np
import pytest

from benchmarks.simulation.churn import replacements
from benchmarks.simulation.scenario import Scenario
from benchmarks.simulation.world import ScenarioWorld


def test_who_is_replaced_comes_back_by_another_name() -> None:
    """300 members stay as many, but for half a minute each time."""
    changes = replacements(300, 15, from_s=600, every_s=120)
    scenario = Scenario(
        "churn",
        "300 members, one replaced every other minute",
        "steady",
        speeds=(100.0,) * 315,
        absent=tuple(range(300, 315)),
        changes=changes,
    )
    world = ScenarioWorld.of(scenario, hours=1)
    there = world.present.sum(axis=1)
    assert set(there.tolist()) == {299, 300}
    assert (there == 299).sum() == 15 * 3
    assert np.flatnonzero(world.present[-1]).tolist() == list(range(15, 315))
    assert world.work[0].sum() == pytest.approx(0.6 * 300 * 100)
