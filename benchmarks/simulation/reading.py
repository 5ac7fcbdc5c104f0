"""Reading in a scenario: how much members read, depending on how clients share their time."""

import numpy as np

from benchmarks.simulation.sharing.clients import CLIENTS
from benchmarks.simulation.sharing.way import Sharing, TimeStep
from benchmarks.simulation.world import ScenarioWorld
from fairlead.simulation.consumption import Reading
from fairlead.simulation.world import Float64, Int64, Mask


class ScenarioReading(Reading):
    """The backlog of each partition while the scenario's members read.

    Time that a member does not need for one partition goes to its other partitions. A throttled
    partition is read first, up to its limit.
    """

    world: ScenarioWorld

    def __init__(self, world: ScenarioWorld) -> None:
        super().__init__(world)
        self.client = CLIENTS[world.scenario.client]
        self._sharing: Sharing = self.client.sharing(world.turns, world.scenario.record_bytes)
        #: Number of `waiting` records that applications received but have not processed. None:
        #: there are never such records.
        self._ahead = None if self._sharing.ahead() is None else np.zeros(self.waiting.shape)
        self._crawls = np.isfinite(world.limits)

    def delivered(self, step: int | Int64, partition: Int64 | slice = slice(None)) -> Float64:
        """Return the offsets up to which applications have received records, at a step's start."""
        given = super().delivered(step, partition)
        if self._ahead is not None:
            given = given + self._ahead[step, partition]
        return given

    @property
    def ahead(self) -> bool:
        """Whether applications receive records long before they process them."""
        return self._ahead is not None

    def held_ahead(self, first: int, last: int) -> Float64 | None:
        """Return the maximum number of records that applications held in these steps, shape (P,).

        None: applications never hold records.
        """
        if self._ahead is None:
            return None
        most: Float64 = self._ahead[first : last + 1].max(axis=0)
        return most

    def processed(self, at: Float64) -> Float64:
        """Return the offsets up to which P partitions are processed.

        `at` has a time for each partition, in steps. It may be fractional.
        """
        before = np.floor(at).astype(np.int64)
        each = np.arange(at.size)
        first = super().delivered(before, each)
        last = super().delivered(np.minimum(before + 1, self.world.steps), each)
        processed: Float64 = first + (at - before) * (last - first)
        return processed

    def speeds(self, first: int, last: int) -> Float64:
        """Return each member's speed in each step from `first` to `last` - 1."""
        return self._speeds(first, last)

    def take_over(self, partitions: Mask, step: int, committed: Int64) -> None:
        """Let new owners start at the committed offsets; drop records that old owners fetched."""
        self._sharing.forget(partitions)
        super().take_over(partitions, step, committed)

    def _speeds(self, first: int, last: int) -> Float64:
        """Return the speeds, reduced for members that a `Spoil` of the scenario slows down."""
        share = np.ones(self.world.speeds.shape[1])
        for spoil in self.world.scenario.spoils:
            owners = self.owner[list(spoil.partitions)]
            owned = np.bincount(owners[owners >= 0], minlength=share.size)
            if spoil.home is not None:
                owned[spoil.home] = 0
            share = np.where(owned > spoil.most, np.minimum(share, spoil.share), share)
        return super()._speeds(first, last) * share

    def _read(
        self, step: int, there: Float64, *, owner: Int64, budgets: Float64, readable: Mask
    ) -> Float64:
        now = TimeStep(there, owner, self.world.costs[step], budgets, readable)
        crawls = self._crawls[step]
        read = self._read_crawling(step, now) if crawls.any() else self._sharing.read(now)
        if self._ahead is not None:
            self._ahead[step + 1] = self._sharing.ahead()
        return read

    def _read_crawling(self, step: int, now: TimeStep) -> Float64:
        """Read throttled partitions up to their limits, then others in the time that is left."""
        crawls = self._crawls[step]
        self._sharing.forget(crawls, handed_out=True)
        most = np.where(crawls & now.readable, self.world.limits[step] * self.world.step_s, 0.0)
        read = np.minimum(now.waiting, most)
        work = np.bincount(now.owner, read * now.costs, now.budgets.size)
        read *= np.minimum(now.budgets / np.maximum(work, 1e-9), 1.0)[now.owner]
        spent = np.bincount(now.owner, read * now.costs, now.budgets.size)
        rest = TimeStep(
            now.waiting,
            now.owner,
            now.costs,
            np.maximum(now.budgets - spent, 0.0),
            now.readable & ~crawls,
        )
        both: Float64 = read + self._sharing.read(rest)
        return both
