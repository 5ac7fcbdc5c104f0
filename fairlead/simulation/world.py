"""The fixed input of a simulation: arrivals, speeds of members, present members.

Belongs here: values that do not depend on the assignment. Does not: values that do (`consumption`,
`loop`), or reading a recording (`fairlead.surfaces.backtest`).
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

Float64 = npt.NDArray[np.float64]
Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Roster:
    """All members, topics and partitions that ever exist: M members, T topics, P partitions.

    Parameters
    ----------
    members, topics
        Names, in Kafka's order.
    counts
        Largest number of partitions of each topic.
    subscribed
        Which member reads which topic, bool of shape (M, T).
    commit_s
        Seconds between a member's commits.
    """

    members: tuple[str, ...]
    topics: tuple[str, ...]
    counts: tuple[int, ...]
    subscribed: Mask
    commit_s: float = 5.0


@dataclass(frozen=True, eq=False)
class World:
    """N steps of P partitions and M members.

    Parameters
    ----------
    roster
        The world's members and topics.
    step_s
        Length of a step, in seconds.
    arrivals
        Records that arrive in each step, int64 of shape (N, P).
    speeds
        Records a second of each member, float64 of shape (N, M).
    exists
        Which partitions exist, bool of shape (N, P).
    present
        Which members are present, bool of shape (N, M).
    phases
        When each member commits: seconds past each multiple of the interval, shape (M,).
    first
        Log end offsets at the start, int64 of shape (P,).
    waiting
        Records that wait at the start, float64 of shape (P,).
    """

    roster: Roster
    step_s: float
    arrivals: Int64
    speeds: Float64
    exists: Mask
    present: Mask
    phases: Float64
    first: Int64
    waiting: Float64

    @property
    def steps(self) -> int:
        """N, the number of steps."""
        return len(self.arrivals)

    @property
    def partitions(self) -> int:
        """P, the number of partitions."""
        return int(self.arrivals.shape[1])

    @cached_property
    def ends(self) -> Int64:
        """Log end offsets at the start of each step and at the end, int64 of shape (N + 1, P)."""
        ends = np.zeros((self.steps + 1, self.partitions), np.int64)
        np.cumsum(self.arrivals, axis=0, out=ends[1:])
        return ends + self.first

    @cached_property
    def topic_of(self) -> Int64:
        """Topic of each partition, int64 of shape (P,)."""
        counts = self.roster.counts
        return np.repeat(np.arange(len(counts)), counts)

    @cached_property
    def changed(self) -> Int64:
        """Steps that begin with a change of members or partitions, thus a rebalance; includes 0."""
        members = np.diff(self.present, axis=0).any(axis=1)
        partitions = np.diff(self.exists, axis=0).any(axis=1)
        return np.concatenate(([0], np.flatnonzero(members | partitions) + 1))
