"""What a record takes, by partition and over time."""

import numpy as np
import pytest

from benchmarks.simulation.costs import Dear, TrueCosts
from benchmarks.simulation.scenario import Scenario
from benchmarks.simulation.traffic import Traffic
from benchmarks.simulation.world import ScenarioWorld


def test_usual_records_cost_one() -> None:
    """Without anything said, every record is of the usual kind."""
    assert (TrueCosts().over(np.arange(3.0), 4) == 1).all()


def test_a_deploy_makes_everything_dear_for_a_while() -> None:
    """From one moment until another; partitions by number where they are said."""
    costs = TrueCosts(dear=(Dear(2.0, from_s=10, until_s=20), Dear(5.0, (1,))))
    assert costs.over(np.array([0.0, 10.0, 20.0]), 3).tolist() == [[1, 5, 1], [2, 10, 2], [1, 5, 1]]


def test_partitions_have_records_of_their_own_kind() -> None:
    """Log-normal, the same at all moments, and the same by the same seed."""
    costs = TrueCosts(spread=0.5, shuffle=3).over(np.zeros(2), 4000)
    assert np.log(costs[0]).std() == pytest.approx(0.5, rel=0.05)
    assert np.array_equal(costs[0], costs[1])
    assert np.array_equal(costs, TrueCosts(spread=0.5, shuffle=3).over(np.zeros(2), 4000))


def test_what_arrives_is_a_share_of_what_can_be_done_at_the_start() -> None:
    """At 60 %, whatever records cost; twice as dear later, 120 %."""
    costs = TrueCosts(spread=0.8, dear=(Dear(2.0, from_s=1800),))
    scenario = Scenario("dear", "dear later", "changing", Traffic(used=0.6, zipf=1.0), costs=costs)
    used = ScenarioWorld.of(scenario, hours=1).work.sum(axis=1) / 1000
    assert used[0] == pytest.approx(0.6)
    assert used[-1] == pytest.approx(1.2)
