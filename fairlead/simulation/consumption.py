"""Simulate how members read records, step by step.

Belongs here: the numbers of records that wait and that are read. Belongs elsewhere: committed
offsets (`commits`), and which member owns which partition (`loop`).
"""

import numpy as np

from fairlead.simulation.world import Float64, Int32, Int64, Mask, World


class Reading:
    """Simulates how members read, and counts the records that wait in each partition.

    Records that arrive in a step may be read in the same step. In each step, a member reads the
    same fraction of the waiting records of each of its partitions. Paused partitions and partitions
    without an owner are not read.

    Parameters
    ----------
    world
        The input, with N steps, P partitions and M members.
    """

    def __init__(self, world: World) -> None:
        self.world = world
        self.owner: Int32 = np.full(world.partitions, -1, np.int32)
        #: Number of records that wait at the start of each step and at the end, shape (N + 1, P).
        self.waiting: Float64 = np.zeros((world.steps + 1, world.partitions))
        self.waiting[0] = world.waiting
        #: First step in which a paused partition is read again, int64 of shape (P,).
        self.still_until: Int64 = np.zeros(world.partitions, np.int64)

    def run(self, first: int, last: int) -> None:
        """Run the steps from `first` to `last` - 1."""
        members = self.world.speeds.shape[1]
        slot = np.where(self.owner < 0, members, self.owner).astype(np.int64)
        budgets = np.zeros((last - first, members + 1))
        budgets[:, :members] = self._speeds(first, last) * self.world.step_s
        readable = self.still_until <= first
        for step in range(first, last):
            if not readable.all():
                readable = self.still_until <= step
            waiting = self.waiting[step] + self.world.arrivals[step]
            self.waiting[step + 1] = waiting - self._read(
                step, waiting, owner=slot, budgets=budgets[step - first], readable=readable
            )

    def delivered(self, step: int | Int64, partition: Int64 | slice = slice(None)) -> Float64:
        """Return the offsets up to which records were delivered before the start of a step."""
        delivered: Float64 = self.world.ends[step, partition] - self.waiting[step, partition]
        return delivered

    def stand_still(self, partitions: Mask, step: int, move_downtime_s: float) -> None:
        """Pause partitions from the start of a step, for `move_downtime_s` or slightly longer."""
        until = step + int(np.ceil(move_downtime_s / self.world.step_s))
        self.still_until[partitions] = until

    def take_over(self, partitions: Mask, step: int, committed: Int64) -> None:
        """Let the new owners of partitions begin at the committed offsets."""
        back = np.maximum(self.delivered(step) - committed, 0.0)
        self.waiting[step] += np.where(partitions, back, 0.0)

    def _speeds(self, first: int, last: int) -> Float64:
        """Return the speed of each member in each of these steps, shape (last - first, M)."""
        return self.world.speeds[first:last]

    def _read(
        self, step: int, there: Float64, *, owner: Int64, budgets: Float64, readable: Mask
    ) -> Float64:
        """Return the number of records of each partition that are read in a step, shape (P,).

        Parameters
        ----------
        there
            Number of records that wait in each partition, shape (P,).
        owner
            Number of the member that reads each partition, shape (P,); M: no member.
        budgets
            Number of records that each member can process in the step, shape (M + 1,). The last
            value is 0, for partitions without an owner.
        readable
            Which partitions are not paused, bool of shape (P,).
        """
        del step
        there = np.where(readable, there, 0.0)
        demand = np.bincount(owner, there, budgets.size)
        share = np.minimum(budgets / np.maximum(demand, 1e-9), 1.0)
        read: Float64 = there * share[owner]
        return read
