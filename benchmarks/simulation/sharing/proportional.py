"""The ideal: a member reads its partitions in proportion to their waiting records."""

import numpy as np

from benchmarks.simulation.sharing.way import TimeStep
from fairlead.simulation.world import Float64, Mask


class Proportional:
    """All that a member can do is used while anything waits; what arrives in a step is read in it.

    What one partition does not use goes to the others.
    """

    def read(self, step: TimeStep) -> Float64:
        """Read the same share of every partition of a member."""
        there = np.where(step.readable, step.waiting, 0.0)
        demand = np.bincount(step.owner, there * step.costs, step.budgets.size)
        share = np.minimum(step.budgets / np.maximum(demand, 1e-9), 1.0)
        read: Float64 = there * share[step.owner]
        return read

    def ahead(self) -> Float64 | None:
        """Return that nothing is held."""
        return None

    def forget(self, partitions: Mask, *, handed_out: bool = False) -> None:
        """Nothing is remembered."""
