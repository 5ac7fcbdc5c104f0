"""Committed offsets of simulated consumers.

Belongs here: when members commit, and which offsets they commit. Belongs elsewhere: reading
(`consumption`).
"""

import numpy as np
import numpy.typing as npt

from fairlead.simulation.consumption import Reading
from fairlead.simulation.world import Float64, Int32, Int64, Mask


class SimulatedCommits:
    """The committed offset of each partition: how far the owner had read at its last commit.

    Each member commits at regular intervals. A member also commits a partition that it gives up, as
    clients do when a partition is revoked.

    Parameters
    ----------
    reading
        The simulated reading of P partitions.
    """

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        world = reading.world
        #: Newest committed offsets, shape (P,); they never decrease.
        self._committed: Int64 = np.floor(reading.delivered(0)).astype(np.int64)
        #: When each partition got its present owner, in seconds from the start, shape (P,).
        self._taken_over_at: Float64 = np.zeros(world.partitions)

    def hand_over(self, step: int, partitions: Mask) -> Int64:
        """Commit partitions whose owners change; return all committed offsets, of shape (P,)."""
        offsets = np.floor(self._reading.delivered(step)).astype(np.int64)
        self.at(step)
        self._commit(step, partitions, offsets, np.full(partitions.size, self._now(step)))
        self._taken_over_at[partitions] = self._now(step)
        return self._committed.copy()

    def at(self, step: int) -> Int64:
        """Return the committed offsets at the start of a step, int64 of shape (P,)."""
        world = self._reading.world
        now = self._now(step)
        owner: Int32 = self._reading.owner
        phases = np.where(owner >= 0, world.phases[owner], 0.0)
        moment = np.maximum(now - np.mod(now - phases, self._interval_s(step)[owner]), 0.0)
        offsets = np.floor(self._given_at(moment)).astype(np.int64)
        self._commit(step, (owner >= 0) & (moment > self._taken_over_at), offsets, moment)
        return self._committed.copy()

    def _now(self, step: int) -> float:
        return step * self._reading.world.step_s

    def _commit(self, step: int, partitions: Mask, given: Int64, moment: Float64) -> None:
        """Commit the offsets `given` of some partitions.

        Parameters
        ----------
        step
            The present step.
        partitions
            The partitions to commit, shape (P,).
        given
            Offset up to which each owner had received records at `moment`, shape (P,).
        moment
            Time of each commit, in seconds from the start, shape (P,).
        """
        del step, moment
        self._committed = np.where(partitions, np.maximum(self._committed, given), self._committed)

    def _interval_s(self, step: int) -> Float64:
        """Return each member's commit interval in seconds, shape (M + 1,).

        The last value is for partitions without an owner.
        """
        del step
        roster = self._reading.world.roster
        return np.full(len(roster.members) + 1, roster.commit_s)

    def _given_at(self, moment: Float64) -> Float64:
        """Return, for each partition, the offset up to which its owner had received records.

        `moment` contains a time for each partition. Offsets are interpolated between steps.
        """
        world = self._reading.world
        steps = moment / world.step_s
        before = np.floor(steps).astype(np.int64)
        after = np.minimum(np.ceil(steps).astype(np.int64), world.steps)
        each: npt.NDArray[np.intp] = np.arange(world.partitions)
        first = self._reading.delivered(before, each)
        last = self._reading.delivered(after, each)
        given: Float64 = first + (steps - before) * (last - first)
        return given
