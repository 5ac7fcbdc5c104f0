"""Costs of the records of each partition over time."""

from dataclasses import dataclass

import numpy as np

from fairlead.simulation.world import Float64


@dataclass(frozen=True)
class Expensive:
    """Records that are expensive for a while.

    Parameters
    ----------
    factor
        Cost as a multiple of the usual cost.
    partitions
        Partitions with these records. Empty: all partitions, for example after a deployment.
    from_s, until_s
        Seconds from the start.
    """

    factor: float
    partitions: tuple[int, ...] = ()
    from_s: float = 0.0
    until_s: float = np.inf


@dataclass(frozen=True)
class TrueCosts:
    """Cost of a record of each partition, as a multiple of the usual cost.

    Parameters
    ----------
    spread
        Standard deviation of the logarithms of the partitions' costs.
    shuffle
        Seed for drawing the costs.
    expensive
        Periods and partitions whose records are expensive.
    """

    spread: float = 0.0
    shuffle: int = 0
    expensive: tuple[Expensive, ...] = ()

    def over(self, at: Float64, partitions: int) -> Float64:
        """Return the costs at N moments in seconds from the start, float64 of shape (N, P)."""
        rng = np.random.default_rng((self.shuffle, partitions))
        usual = np.exp(self.spread * rng.standard_normal(partitions))
        costs: Float64 = np.tile(usual, (at.size, 1))
        for period in self.expensive:
            during = (at >= period.from_s) & (at < period.until_s)
            chosen = np.array(period.partitions or range(partitions))
            costs[np.ix_(during, chosen)] *= period.factor
        return costs
