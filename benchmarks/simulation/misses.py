"""Missing values of samples: end offsets of some partitions, or all owners."""

from dataclasses import dataclass

import numpy as np

from fairlead.simulation.world import Mask


@dataclass(frozen=True)
class Misses:
    """Chances that a sample lacks values.

    Parameters
    ----------
    leader
        Chance that a broker does not answer, so that the end offsets of its partitions are unknown.
    coordinator
        Chance that the group is rebalancing, so that the owners are unknown.
    brokers
        Number of brokers. The leaders of successive partitions are on successive brokers.
    """

    leader: float = 0.0
    coordinator: float = 0.0
    brokers: int = 6

    def of(self, rng: np.random.Generator, steps: int, partitions: int) -> tuple[Mask, Mask]:
        """Choose randomly what a sample at each step lacks: end offsets (N, P), all owners (N,)."""
        absent = rng.integers(self.brokers, size=steps)
        absent[rng.random(steps) >= self.leader] = -1
        leader = np.arange(partitions) % self.brokers
        return leader == absent[:, None], rng.random(steps) < self.coordinator
