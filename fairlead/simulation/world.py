"""The fixed input of a simulation: arrivals, present members and their speeds.

Belongs here: values that do not depend on the assignment. Belongs elsewhere: values that depend on
it (`consumption`, `loop`), and reading a recording (`fairlead.surfaces.backtest`).
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
        Names, in the order in which Kafka sorts strings.
    counts
        Number of partitions of each topic, counting all that ever exist.
    subscribed
        Which member subscribes to which topic, bool of shape (M, T).
    commit_s
        Seconds between two commits of a member.
    """

    members: tuple[str, ...]
    topics: tuple[str, ...]
    counts: tuple[int, ...]
    subscribed: Mask
    commit_s: float = 5.0


@dataclass(frozen=True, eq=False)
class World:
    """The input of a simulation of N steps, P partitions and M members.

    Parameters
    ----------
    roster
        The world's members and topics.
    step_s
        Length of a step, in seconds.
    arrivals
        Number of records that arrive in each step, int64 of shape (N, P).
    speeds
        Records that each member can process per second, float64 of shape (N, M).
    exists
        Which partitions exist in each step, bool of shape (N, P).
    present
        Which members are present in each step, bool of shape (N, M).
    phases
        A member commits this number of seconds after each multiple of `commit_s`, shape (M,).
    first
        End offsets at the start of the simulation, int64 of shape (P,).
    waiting
        Number of records that wait at the start of the simulation, float64 of shape (P,).
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
        """End offsets at the start of each step and after the last, int64 of shape (N + 1, P)."""
        ends = np.zeros((self.steps + 1, self.partitions), np.int64)
        np.cumsum(self.arrivals, axis=0, out=ends[1:])
        return ends + self.first

    @cached_property
    def topic_of(self) -> Int64:
        """Topic number of each partition, int64 of shape (P,)."""
        counts = self.roster.counts
        return np.repeat(np.arange(len(counts)), counts)

    @cached_property
    def changed(self) -> Int64:
        """Steps that begin with a rebalance, because members or partitions change; includes 0."""
        members = np.diff(self.present, axis=0).any(axis=1)
        partitions = np.diff(self.exists, axis=0).any(axis=1)
        return np.concatenate(([0], np.flatnonzero(members | partitions) + 1))
