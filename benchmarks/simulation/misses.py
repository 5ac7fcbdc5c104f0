"""Samples with missing values: partitions without an answer, or all owners."""

from dataclasses import dataclass

import numpy as np

from fairlead.simulation.world import Mask


@dataclass(frozen=True)
class Misses:
    """How often a look misses something.

    Parameters
    ----------
    leader
        Chance that a broker does not answer: ends of the logs that it leads are not known.
    coordinator
        Chance that the group is rebalancing: nobody's partitions are known.
    brokers
        How many brokers lead partitions, in turn.
    """

    leader: float = 0.0
    coordinator: float = 0.0
    brokers: int = 6

    def of(self, rng: np.random.Generator, steps: int, partitions: int) -> tuple[Mask, Mask]:
        """Draw what a look in each step misses: partitions, (N, P), and all owners, (N,)."""
        absent = rng.integers(self.brokers, size=steps)
        absent[rng.random(steps) >= self.leader] = -1
        leader = np.arange(partitions) % self.brokers
        return leader == absent[:, None], rng.random(steps) < self.coordinator
