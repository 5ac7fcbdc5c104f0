"""Records that wait in partitions, and members that read them, as a fluid.

Belongs here: what waits, step by step. Does not: what of it is committed (`commits`), or who owns
what (`loop`).
"""

import numpy as np
import numpy.typing as npt

from fairlead.simulation.traffic import Float64
from fairlead.simulation.world import World

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]


class Fluid:
    """What waits in each partition while somebody reads.

    A member reads its partitions in proportion to what waits in them, so that all that it can do is
    used while anything waits. What arrives in a step may be read in the same step. A partition that
    stands still, is poisoned or has no owner is not read; its owner's speed goes to the others.

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
        self._poison = world.poisoned.any()

    def run(self, first: int, last: int) -> None:
        """Let the steps from `first` up to `last`, which is not among them, happen."""
        world, waiting = self.world, self.waiting
        members = world.speeds.shape[1]
        nobody = self.owner < 0
        slot = np.where(nobody, members, self.owner)
        budgets = np.zeros((last - first, members + 1))
        budgets[:, :members] = world.speeds[first:last] * world.step_s
        standing = self.still_until > first
        for step in range(first, last):
            wait = waiting[step] + world.arrivals[step]
            read = wait
            if standing.any():
                standing = self.still_until > step
                read = np.where(standing, 0.0, wait)
            if self._poison:
                read = np.where(world.poisoned[step], 0.0, read)
            demand = np.bincount(slot, weights=read, minlength=members + 1)
            share = np.minimum(budgets[step - first] / np.maximum(demand, 1e-9), 1.0)
            waiting[step + 1] = wait - read * share[slot]

    def positions(self, step: int) -> Float64:
        """Offsets up to which partitions have been read at the start of a step, shape (P,)."""
        positions: Float64 = self.world.ends[step] - self.waiting[step]
        return positions

    def stand_still(self, partitions: npt.NDArray[np.bool_], step: int, pause_s: float) -> None:
        """Let partitions stand still from a step on, for whole steps."""
        until = step + int(np.ceil(pause_s / self.world.step_s))
        self.still_until[partitions] = until

    def rewind(self, partitions: npt.NDArray[np.bool_], step: int, to: Int64) -> None:
        """Go back to the offsets that are committed, as whoever takes partitions over does."""
        back = np.maximum(self.positions(step) - to, 0.0)
        self.waiting[step] += np.where(partitions, back, 0.0)
