"""Fixtures of the simulation's tests."""

import numpy as np
import pytest

from fairlead.domain.analysis.sample_series import SampleSeries
from fairlead.simulation.controllers import Moment
from fairlead.simulation.world import Int32


class Scripted:
    """Assigns round robin at each rebalance, and plans by a script of decisions."""

    def __init__(self, plans: dict[int, list[int]] | None = None) -> None:
        self.plans = plans or {}
        self.moments: list[Moment] = []
        self.series: list[SampleSeries] = []

    def rebalance(self, moment: Moment) -> Int32:
        """Assign the partitions round robin."""
        members = len(moment.problem.members)
        return (np.arange(moment.problem.partition_total) % members).astype(np.int32)

    def decide(self, moment: Moment) -> Int32 | None:
        """Return the plan of this decision, counted from 0."""
        self.moments.append(moment)
        self.series.append(moment.series())
        plan = self.plans.get(len(self.moments) - 1)
        return None if plan is None else np.array(plan, np.int32)


@pytest.fixture
def scripted() -> type[Scripted]:
    """Return a controller class that plans by the script of a test."""
    return Scripted
