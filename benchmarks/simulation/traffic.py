"""Records a second that arrive at each partition over time."""

from dataclasses import dataclass

import numpy as np

from fairlead.simulation.world import Float64, Mask

DAY_S = 86_400.0
HOUR_S = 3_600.0


@dataclass(frozen=True)
class Wander:
    """Some partitions are hot, and every so often others are.

    Parameters
    ----------
    hot
        How many at a time.
    rate
        What each of them gets, in records a second; the others share the rest.
    every_s, from_s
        How long it lasts, and when it first ends: seconds.
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
        Which.
    factor
        How many times their traffic.
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
        Of what all machines of the start can do together: the share that arrives; at night where
        there is a `peak`.
    peak
        The share at noon: traffic follows the day, as a cosine, from midnight on. None: constant.
    zipf
        The share of the partition of rank i is proportional to i to the power of minus this.
    shuffle
        Seed by which ranks are dealt to partitions; and that of `wander`.
    wander, surges
        What happens to single partitions.
    """

    used: float = 0.6
    peak: float | None = None
    zipf: float = 0.0
    shuffle: int = 0
    wander: Wander | None = None
    surges: tuple[Surge, ...] = ()

    def rates(self, at: Float64, exists: Mask, capacity: float) -> Float64:
        """Return records a second, float64 of shape (N, P).

        Parameters
        ----------
        at
            Moments, seconds from the start, shape (N,), ascending.
        exists
            Which partitions exist, bool of shape (N, P): the others' share goes to these.
        capacity
            Of all machines together, records a second.
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
