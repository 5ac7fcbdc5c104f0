"""Members that come and go."""

import numpy as np
import pytest

from benchmarks.simulation.churn import replacements, rolling_restart
from benchmarks.simulation.scenario import Scenario
from benchmarks.simulation.world import ScenarioWorld


def test_one_at_a_time_is_away_in_a_rolling_restart() -> None:
    """Each comes back by its name before the next goes."""
    changes = rolling_restart(3, 600)
    assert [(change.at_s, change.member, change.joins) for change in changes][:3] == [
        (600, 0, False),
        (660, 0, True),
        (720, 1, False),
    ]
    with pytest.raises(ValueError, match="one member away"):
        rolling_restart(3, 600, every_s=30)


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


def test_names_of_many_members_are_in_kafkas_order() -> None:
    """By text as by number."""
    names = Scenario("many", "many members", "healthy", speeds=(1.0,) * 300).members
    assert list(names) == sorted(names)
