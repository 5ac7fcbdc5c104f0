"""Simulated counters of consumers' work; `fairlead.followers.core.meter` has the real ones."""

from typing import Final

import numpy as np

from benchmarks.simulation.reading import ScenarioReading
from fairlead.simulation.world import Float64, Int64

#: Seconds that a handler needs to put a record into a queue or a list.
_QUEUED_S: Final = 1e-5
#: Share of an application's work that it does in flushes, after every `flush_every` records.
_FLUSHED: Final = 0.9
#: Length of a block in seconds. Time that cannot be attributed to single records counts as the time
#: of one record per block: it is added up over the block, and the sum is squared.
_BLOCK_S: Final = 600.0
#: If a consumer works for at least this share of a step, its queues count as full.
_FULL: Final = 0.98


class Meters:
    """Cumulative counters of all partitions and consumers at the start of each step.

    Parameters
    ----------
    reading
        The simulated reading of P partitions by M members in N steps.
    """

    def __init__(self, reading: ScenarioReading) -> None:
        self._reading, self._world = reading, reading.world
        world, habit = reading.world, reading.world.scenario.reports
        self._habit = habit
        self._rng = np.random.default_rng((habit.seed, 1))
        members = world.speeds.shape[1]
        #: For each partition, over all of its owners: sum of the times of records, and sum of the
        #: squared times.
        self.busy_s: Float64 = np.zeros((world.steps + 1, world.partitions))
        self.squares_s2: Float64 = np.zeros((world.steps + 1, world.partitions))
        #: Seconds that each consumer waited for records, and number of polls that returned records:
        #: here, each poll returns one record.
        self.waiting_s: Float64 = np.zeros((world.steps + 1, members))
        self.calls: Float64 = np.zeros((world.steps + 1, members))
        #: Number of partitions that each consumer has paused at present.
        self.paused: Float64 = np.zeros(members)
        self._lies = np.random.default_rng((habit.seed, 2)).random(members) < habit.lying
        #: Records of each consumer since its last flush, and seconds that the next flush will take.
        self._unflushed, self._owed_s = np.zeros(members), np.zeros(members)
        #: For each partition: the seconds of the current block that cannot be attributed to
        #: records, and the number of this block.
        self._loose_s = np.zeros(world.partitions)
        self._block: Int64 = np.zeros(world.partitions, np.int64)

    def count(self, first: int, last: int) -> None:
        """Advance the counters from the start of step `first` to the start of step `last`."""
        if first == last:
            return
        world, reading, habit = self._world, self._reading, self._habit
        count = last - first
        members = world.speeds.shape[1]
        position = world.ends[first : last + 1] - reading.waiting[first : last + 1]
        read = np.maximum(np.diff(position, axis=0), 0.0)
        whole = np.maximum(np.diff(np.floor(position + 1e-6), axis=0), 0.0)
        owner = np.where(reading.owner < 0, members, reading.owner).astype(np.int64)
        speeds = np.concatenate((reading.speeds(first, last), np.full((count, 1), np.inf)), axis=1)
        mean_s = world.costs[first:last] / np.maximum(speeds[:, owner], 1e-9)
        busy_s, squares_s2 = self._times(whole, mean_s)
        # Scale the drawn times: their sum must not exceed the length of the step. If the consumer
        # is busy during the whole step, their sum must be the true time of the records.
        steps = np.repeat(np.arange(count), owner.size)
        places = steps * (members + 1) + np.tile(owner, count)
        size = count * (members + 1)
        true_s, counted_s = (
            np.bincount(places, values.ravel(), size).reshape(count, members + 1)
            for values in (read * mean_s, busy_s)
        )
        most = np.where(true_s >= _FULL * world.step_s, true_s, np.maximum(true_s, world.step_s))
        scale = np.minimum(most / np.maximum(counted_s, 1e-12), 1.0)
        full = true_s >= _FULL * world.step_s
        scale = np.where(full, true_s / np.maximum(counted_s, 1e-12), scale)[:, owner]
        busy_s, squares_s2 = busy_s * scale, squares_s2 * scale**2
        in_application = np.bincount(places, busy_s.ravel(), size).reshape(count, members + 1)
        if habit.application == "flush":
            self._flush(whole, busy_s, squares_s2, owner)
        elif habit.application == "collect":
            loose_s = np.maximum(in_application[:, owner] * (1 - _QUEUED_S), 0.0)
            busy_s, squares_s2 = whole * _QUEUED_S, whole * _QUEUED_S**2
            self._widen(first, squares_s2, whole, loose_s)
        elif habit.application == "workers":
            busy_s, squares_s2 = whole * _QUEUED_S, whole * _QUEUED_S**2
            in_application = np.bincount(places, busy_s.ravel(), size).reshape(count, members + 1)
            owned = np.bincount(owner, minlength=members + 1)
            self.paused = np.where(full[-1], owned, 0)[:members].astype(np.float64)
        elif habit.application == "tasks":
            self.paused = np.full(members, np.nan)
        if habit.noise:
            liars = np.append(self._lies, False)[owner]
            factor = habit.noise * self._rng.standard_normal(owner.size)
            factor = np.exp(factor - habit.noise**2 / 2.0)
            factor = np.where(liars, factor, 1.0)
            busy_s, squares_s2 = busy_s * factor, squares_s2 * factor**2
        rows = slice(first + 1, last + 1)
        self.busy_s[rows] = self.busy_s[first] + busy_s.cumsum(axis=0)
        self.squares_s2[rows] = self.squares_s2[first] + squares_s2.cumsum(axis=0)
        waited = np.maximum(world.step_s - in_application[:, :members], 0.0)
        self.waiting_s[rows] = self.waiting_s[first] + waited.cumsum(axis=0)
        records = np.bincount(places, whole.ravel(), size).reshape(count, members + 1)
        self.calls[rows] = self.calls[first] + records[:, :members].cumsum(axis=0)

    def _times(self, records: Float64, mean_s: Float64) -> tuple[Float64, Float64]:
        """Draw the sums of times and of squared times for `records` records with mean `mean_s`."""
        spread2 = self._habit.spread**2
        counted = np.maximum(records, 1.0)
        if not spread2:
            return records * mean_s, records * mean_s**2
        total_s = mean_s * spread2 * self._rng.gamma(counted / spread2)
        # The excess kurtosis of a gamma distribution is 6 times its squared coefficient of
        # variation.
        shape = counted / (2.0 + 6.0 * spread2)
        deviation2 = spread2 * mean_s**2 * self._rng.gamma(shape) / shape
        squares_s2 = total_s**2 / counted + (counted - 1.0) * deviation2
        any_ = records > 0
        return np.where(any_, total_s, 0.0), np.where(any_, squares_s2, 0.0)

    def _flush(self, records: Float64, busy_s: Float64, squares_s2: Float64, owner: Int64) -> None:
        """Move most of the processing time to the records right before each flush, in place."""
        owed = busy_s * _FLUSHED
        busy_s -= owed
        squares_s2 *= (1.0 - _FLUSHED) ** 2
        members = self._unflushed.size
        for step in range(len(records)):
            self._unflushed += np.bincount(owner, records[step], members + 1)[:members]
            self._owed_s += np.bincount(owner, owed[step], members + 1)[:members]
            for member in np.flatnonzero(self._unflushed >= self._habit.flush_every).tolist():
                mine = np.flatnonzero(owner == member)
                share = records[step, mine] / records[step, mine].sum()
                flushes = int(self._unflushed[member] // self._habit.flush_every)
                each_s = self._owed_s[member] / flushes
                hit = self._rng.multinomial(flushes, share)
                busy_s[step, mine] += hit * each_s
                squares_s2[step, mine] += hit * each_s**2
                self._unflushed[member] %= self._habit.flush_every
                self._owed_s[member] = 0.0

    def _widen(self, first: int, squares_s2: Float64, records: Float64, loose_s: Float64) -> None:
        """Add to `squares_s2` the square of each block's total of `loose_s`.

        `loose_s`: seconds of each step and partition that belong to no single record.
        """
        for step in range(len(records)):
            block = int((first + step) * self._world.step_s // _BLOCK_S)
            self._loose_s[self._block != block] = 0.0
            self._block[:] = block
            hit = np.where(records[step] > 0, loose_s[step], 0.0)
            squares_s2[step] += hit * (2 * self._loose_s + hit)
            self._loose_s += hit
