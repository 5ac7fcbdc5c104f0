"""Arrival rates of partitions over time, in records per second."""

from dataclasses import dataclass

import numpy as np

from fairlead.simulation.world import Float64, Mask

DAY_S = 86_400.0
HOUR_S = 3_600.0


@dataclass(frozen=True)
class Wander:
    """Some partitions are hot; after a while, other partitions are hot instead.

    Parameters
    ----------
    hot
        Number of hot partitions at a time.
    rate
        Arrival rate of each hot partition, in records per second. All other partitions share the
        remaining traffic.
    every_s
        For how many seconds partitions are hot.
    from_s
        When other partitions become hot for the first time, seconds from the start.
    """

    hot: int = 5
    rate: float = 50.0
    every_s: float = 2 * HOUR_S
    from_s: float = 2.12 * HOUR_S


@dataclass(frozen=True)
class Surge:
    """Partitions that get a multiple of their traffic for a while.

    Parameters
    ----------
    partitions
        Indices of the partitions.
    factor
        Factor by which their traffic is multiplied.
    from_s, until_s
        Seconds from the start.
    """

    partitions: tuple[int, ...]
    factor: float
    from_s: float
    until_s: float = np.inf


@dataclass(frozen=True)
class Traffic:
    """Total traffic over time, and how partitions share it.

    Parameters
    ----------
    used
        Arrivals as a share of the capacity of all machines at the start. With a `peak`, this is the
        share at midnight.
    peak
        The share at noon. Traffic then varies over the day as a cosine. None: it is constant.
    zipf
        Exponent z of Zipf's law: the share of the partition with rank i is proportional to i^-z.
    shuffle
        Seed for the ranks of partitions, and for `wander`.
    wander, surges
        Changes of single partitions.
    """

    used: float = 0.6
    peak: float | None = None
    zipf: float = 0.0
    shuffle: int = 0
    wander: Wander | None = None
    surges: tuple[Surge, ...] = ()

    def rates(self, at: Float64, exists: Mask, capacity: float) -> Float64:
        """Return arrival rates in records per second, float64 of shape (N, P).

        Parameters
        ----------
        at
            Moments, seconds from the start, shape (N,), ascending.
        exists
            Whether each partition exists, bool of shape (N, P). Existing partitions share all
            traffic.
        capacity
            Capacity of all machines together, in records per second.
        """
        rng = np.random.default_rng(self.shuffle)
        partitions = exists.shape[1]
        shares = np.arange(1, partitions + 1, dtype=np.float64) ** -self.zipf
        shares = rng.permutation(shares)[None, :] * exists
        shares = shares / shares.sum(axis=1, keepdims=True)
        total = self._total(at) * capacity
        rates: Float64
        if self.wander is None:
            rates = total[:, None] * shares
        else:
            rates = self._wandering(at, shares, total, rng)
        for surge in self.surges:
            during = (at >= surge.from_s) & (at < surge.until_s)
            rates[np.ix_(during, np.array(surge.partitions))] *= surge.factor
        return rates

    def _total(self, at: Float64) -> Float64:
        if self.peak is None:
            return np.full(at.size, self.used)
        by_day = 0.5 - 0.5 * np.cos(2 * np.pi * at / DAY_S)
        total: Float64 = self.used + (self.peak - self.used) * by_day
        return total

    def _wandering(
        self, at: Float64, shares: Float64, total: Float64, rng: np.random.Generator
    ) -> Float64:
        wander = self.wander or Wander()
        turn = ((at - wander.from_s) // wander.every_s + 1).clip(0).astype(np.int64)
        partitions = shares.shape[1]
        turns = int(turn.max(initial=0)) + 1
        hot = np.array(
            [rng.choice(partitions, wander.hot, replace=False) for _ in range(turns)], np.int64
        )
        is_hot = np.zeros((turns, partitions), dtype=bool)
        is_hot[np.arange(turns)[:, None], hot] = True
        now = is_hot[turn]
        others = np.where(now, 0.0, shares)
        rest = np.maximum(total - wander.hot * wander.rate, 0.0) / others.sum(axis=1)
        wandering: Float64 = np.where(now, wander.rate, others * rest[:, None])
        return wandering
