"""Costs of records: by partition, and over time."""

from dataclasses import dataclass

import numpy as np

from fairlead.simulation.world import Float64


@dataclass(frozen=True)
class Dear:
    """Records that take a multiple of the usual for a while.

    Parameters
    ----------
    factor
        How many times the usual.
    partitions
        Of which partitions; none: of all, as after a deploy.
    from_s, until_s
        Seconds from the start.
    """

    factor: float
    partitions: tuple[int, ...] = ()
    from_s: float = 0.0
    until_s: float = np.inf


@dataclass(frozen=True)
class TrueCosts:
    """What a record of each partition takes, in records of the usual kind.

    Parameters
    ----------
    spread
        Standard deviation of the costs' logarithms: each partition's records are of their own kind.
    shuffle
        Seed of the spread.
    dear
        What is dear, and when.
    """

    spread: float = 0.0
    shuffle: int = 0
    dear: tuple[Dear, ...] = ()

    def over(self, at: Float64, partitions: int) -> Float64:
        """Return costs at N moments, seconds from the start: float64 of shape (N, P)."""
        rng = np.random.default_rng((self.shuffle, partitions))
        usual = np.exp(self.spread * rng.standard_normal(partitions))
        costs: Float64 = np.tile(usual, (at.size, 1))
        for dear in self.dear:
            during = (at >= dear.from_s) & (at < dear.until_s)
            chosen = np.array(dear.partitions or range(partitions))
            costs[np.ix_(during, chosen)] *= dear.factor
        return costs
