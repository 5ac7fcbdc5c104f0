"""What consumers have committed of what they have read.

Belongs here: when commits come, and what they hold. Does not: reading (`fluid`).
"""

import numpy as np
import numpy.typing as npt

from fairlead.simulation.fluid import Fluid, Int32, Int64
from fairlead.simulation.traffic import Float64
from fairlead.simulation.world import Mask


class Commits:
    """Committed offsets: positions at each owner's last commit.

    Whoever gives a partition up commits it, as clients do when a partition is revoked; not a
    partition that nobody commits.

    Parameters
    ----------
    fluid
        P partitions.
    """

    def __init__(self, fluid: Fluid) -> None:
        self._fluid = fluid
        world = fluid.world
        #: What was committed when each partition came to its owner, and when: shape (P,).
        self._taken_over: Int64 = np.floor(fluid.positions(0)).astype(np.int64)
        self._taken_over_at: Float64 = np.zeros(world.partitions)
        #: What had been committed when commits ceased; -1: they have not.
        self._frozen: Int64 = np.full(world.partitions, -1, np.int64)

    def hand_over(self, step: int, partitions: Mask) -> Int64:
        """Commit partitions that go to another owner; return all that is committed, shape (P,)."""
        positions = np.floor(self._fluid.positions(step)).astype(np.int64)
        committed = self._held_back(step, positions)
        self._taken_over[partitions] = committed[partitions]
        self._taken_over_at[partitions] = step * self._fluid.world.step_s
        return np.where(partitions, committed, self.at(step))

    def at(self, step: int) -> Int64:
        """Return what is committed at the start of a step, int64 of shape (P,)."""
        world = self._fluid.world
        now = step * world.step_s
        every = world.roster.commit_s
        owner: Int32 = self._fluid.owner
        phases = np.where(owner >= 0, world.phases[owner], 0.0)
        moment = np.maximum(now - np.mod(now - phases, every), 0.0)
        read = np.floor(self._positions_at(moment)).astype(np.int64)
        by_owner = (owner >= 0) & (moment > self._taken_over_at)
        committed = np.where(by_owner, np.maximum(read, self._taken_over), self._taken_over)
        return self._held_back(step, committed)

    def _positions_at(self, moment: Float64) -> Float64:
        """Interpolate each partition's position at a moment of its own, shape (P,)."""
        world, waiting = self._fluid.world, self._fluid.waiting
        steps = moment / world.step_s
        before = np.floor(steps).astype(np.int64)
        after = np.minimum(np.ceil(steps).astype(np.int64), world.steps)
        each: npt.NDArray[np.intp] = np.arange(world.partitions)
        first = world.ends[before, each] - waiting[before, each]
        last = world.ends[after, each] - waiting[after, each]
        positions: Float64 = first + (steps - before) * (last - first)
        return positions

    def _held_back(self, step: int, committed: Int64) -> Int64:
        """Put what nobody commits any more where it was when that began."""
        world = self._fluid.world
        ill = world.uncommitted[min(step, world.steps - 1)]
        begins = ill & (self._frozen < 0)
        self._frozen[begins] = committed[begins]
        self._frozen[~ill] = -1
        return np.where(ill, self._frozen, committed)
