"""The ideal: a member reads its partitions in proportion to their waiting records."""

import numpy as np

from benchmarks.simulation.sharing.way import TimeStep
from fairlead.simulation.world import Float64, Mask


class Proportional:
    """A member works as long as it has unread records, including those that arrive in this step.

    Time that one partition does not need goes to the member's other partitions.
    """

    def read(self, step: TimeStep) -> Float64:
        """From each partition of a member, read the same share of the waiting records."""
        there = np.where(step.readable, step.waiting, 0.0)
        demand = np.bincount(step.owner, there * step.costs, step.budgets.size)
        share = np.minimum(step.budgets / np.maximum(demand, 1e-9), 1.0)
        read: Float64 = there * share[step.owner]
        return read

    def ahead(self) -> Float64 | None:
        """Return None: applications hold no unprocessed records."""
        return None

    def forget(self, partitions: Mask, *, handed_out: bool = False) -> None:
        """Do nothing, since no records are fetched ahead."""
