"""Records that wait in partitions, and members that read them, step by step.

Belongs here: what waits, and what may be read. Does not: how members share their time (`sharing`),
what of it is committed (`commits`), or who owns what (`loop`).
"""

import numpy as np
import numpy.typing as npt

from fairlead.simulation.sharing.clients import CLIENTS
from fairlead.simulation.sharing.way import Sharing, TimeStep
from fairlead.simulation.traffic import Float64
from fairlead.simulation.world import World

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


class Reading:
    """What waits in each partition while somebody reads.

    What arrives in a step may be read in the same step. A partition that stands still or has no
    owner is not read; its owner's time goes to the others. A partition that crawls is read beside
    the others, up to its limit, before anything else.

    Parameters
    ----------
    world
        N steps of P partitions and M members.
    """

    def __init__(self, world: World) -> None:
        self.world = world
        self.owner: Int32 = np.full(world.partitions, -1, np.int32)
        #: Records that wait at the start of each step and at the end, float64 of shape (N + 1, P).
        self.waiting: Float64 = np.zeros((world.steps + 1, world.partitions))
        self.waiting[0] = world.waiting
        #: First step in which each partition is read again, int64 of shape (P,).
        self.still_until: Int64 = np.zeros(world.partitions, np.int64)
        self.client = CLIENTS[world.roster.client]
        self._sharing: Sharing = self.client.sharing(world.turns, world.roster.record_bytes)
        #: Those of the waiting that applications hold already, as `waiting`; None: never any.
        self._ahead = None if self._sharing.ahead() is None else np.zeros(self.waiting.shape)
        self._crawls = np.isfinite(world.limits)
        self._any_crawls: Mask = np.atleast_1d(self._crawls.any(axis=1))

    def run(self, first: int, last: int) -> None:
        """Let the steps from `first` up to `last`, which is not among them, happen."""
        world, waiting = self.world, self.waiting
        members = world.speeds.shape[1]
        slot = np.where(self.owner < 0, members, self.owner).astype(np.int64)
        budgets = np.zeros((last - first, members + 1))
        budgets[:, :members] = world.speeds[first:last] * world.step_s * self._unspoilt()
        readable = self.still_until <= first
        for step in range(first, last):
            if not readable.all():
                readable = self.still_until <= step
            there = waiting[step] + world.arrivals[step]
            now = TimeStep(there, slot, world.costs[step], budgets[step - first], readable)
            if self._any_crawls[step]:
                waiting[step + 1] = there - self._read_crawling(step, now)
            else:
                waiting[step + 1] = there - self._sharing.read(now)
            if self._ahead is not None:
                self._ahead[step + 1] = self._sharing.ahead()

    def _unspoilt(self) -> Float64:
        """Return the share of its speed that each member does with what it owns, shape (M,)."""
        share = np.ones(self.world.speeds.shape[1])
        for spoil in self.world.roster.spoils:
            owners = self.owner[list(spoil.partitions)]
            owned = np.bincount(owners[owners >= 0], minlength=share.size)
            if spoil.home is not None:
                owned[spoil.home] = 0
            share = np.where(owned > spoil.most, np.minimum(share, spoil.share), share)
        return share

    def delivered(self, step: int | Int64, partition: Int64 | slice = slice(None)) -> Float64:
        """Offsets up to which applications have been given records, at the starts of steps."""
        given = self.world.ends[step, partition] - self.waiting[step, partition]
        if self._ahead is not None:
            given = given + self._ahead[step, partition]
        delivered: Float64 = given
        return delivered

    def stand_still(self, partitions: Mask, step: int, pause_s: float) -> None:
        """Let partitions stand still from a step on, for whole steps."""
        until = step + int(np.ceil(pause_s / self.world.step_s))
        self.still_until[partitions] = until

    def take_over(self, partitions: Mask, step: int, committed: Int64) -> None:
        """Go back to the offsets that are committed, as whoever takes partitions over does."""
        self._sharing.forget(partitions)
        back = np.maximum(self.delivered(step) - committed, 0.0)
        self.waiting[step] += np.where(partitions, back, 0.0)

    def _read_crawling(self, step: int, now: TimeStep) -> Float64:
        """Read what crawls up to its limit, and the rest with what time that leaves."""
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
