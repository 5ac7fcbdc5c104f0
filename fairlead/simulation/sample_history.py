"""The samples that a planner stores: all of the last hour, and one per 15 minutes before that.

Belongs here: removing older samples. Belongs elsewhere: the analysis of samples
(`fairlead.domain.analysis`).
"""

import numpy as np

from fairlead.domain.analysis.sample_series import NONE, SampleSeries
from fairlead.domain.history import EVERY_SAMPLE, THINNED_TO
from fairlead.simulation.membership import PresentMembers
from fairlead.simulation.world import Int32, Int64, World

#: Maximum age of a sample in seconds. Older samples are removed.
OLDEST_S = 6 * 3600.0


class SampleHistory:
    """The samples of a group so far.

    Parameters
    ----------
    world
        The world, with P partitions.
    began
        Start of the simulation, seconds since the epoch.
    """

    def __init__(self, world: World, began: float) -> None:
        self._world, self._began = world, began
        self._rows: list[tuple[float, Int64, Int64, Int32]] = []

    def sample(self, step: int, *, end: Int64, committed: Int64, owner: Int32) -> None:
        """Add a sample, taken at the start of a step; all arrays have shape (P,)."""
        exists, at = self._world.exists[step], step * self._world.step_s
        row = (at, np.where(exists, end, NONE), np.where(exists, committed, NONE), owner)
        self._rows = [row_ for row_ in self._rows if self._keeps(row_[0], at)]
        self._rows.append(row)

    def series(self, group: PresentMembers) -> SampleSeries:
        """Return the stored samples of the partitions that exist now.

        In the series, present members have lower numbers than former members.
        """
        world = self._world
        owners = np.stack([row[3] for row in self._rows])[:, group.partitions]
        former_members = np.setdiff1d(owners[owners >= 0], group.members)
        names = np.concatenate((group.members, former_members))
        number = np.full(len(world.roster.members) + 1, -1, np.int32)
        number[names] = np.arange(names.size)
        end = np.stack([row[1] for row in self._rows])[:, group.partitions]
        return SampleSeries(
            at=self._began + np.array([row[0] for row in self._rows]),
            begin=np.where(end >= 0, 0, NONE),
            end=end,
            committed=np.stack([row[2] for row in self._rows])[:, group.partitions],
            members=tuple(world.roster.members[name] for name in names),
            owner=number[owners],
        )

    @staticmethod
    def _keeps(at: float, now: float) -> bool:
        age = now - at
        sparse = at % THINNED_TO.total_seconds() == 0
        return age <= EVERY_SAMPLE.total_seconds() or (sparse and age <= OLDEST_S)
