"""What happens to a group: machines, members that come and go, topics, commits, ill partitions.

Belongs here: a scenario as a frozen value. Does not: traffic (`traffic`), which scenarios there are
(`catalogue`), or drawing one (`world`).
"""

from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Literal

import numpy as np

from fairlead.simulation.traffic import Traffic

Kind = Literal["healthy", "steady", "changing", "hopeless"]
"""What is expected of a planner: to leave it alone; to cure it once and for all; to follow what
changes; to say that no assignment helps, and to leave it alone."""


@dataclass(frozen=True)
class Slow:
    """A member that does only a share of its speed for a while."""

    member: int
    share: float
    from_s: float = 0.0
    until_s: float = np.inf


@dataclass(frozen=True)
class Change:
    """A member that joins or leaves, seconds from the start."""

    at_s: float
    member: int
    joins: bool


@dataclass(frozen=True)
class Growth:
    """A topic that gets more partitions: so many from then on."""

    at_s: float
    topic: int
    partitions: int


@dataclass(frozen=True)
class Stuck:
    """A partition that is ill.

    Parameters
    ----------
    partition
        Its index.
    consumed
        True: it is read, but nobody commits it. False: nobody reads it (a poison pill).
    from_s, until_s
        Seconds from the start.
    """

    partition: int
    consumed: bool = True
    from_s: float = 0.0
    until_s: float = np.inf


@dataclass(frozen=True)
class Commits:
    """How consumers commit: each at a random phase, or the whole group at the same moments."""

    every_s: float = 5.0
    together: bool = False


@dataclass(frozen=True)
class Scenario:
    """A consumer group, and what happens to it.

    Parameters
    ----------
    name, what
        What it is called, and one line that says what it is.
    kind
        What is expected of a planner.
    traffic
        What arrives.
    speeds
        Records a second of each machine, member by member.
    absent
        Members that are not there at the start.
    topics
        Partitions of each topic at the start.
    slow, changes, growth, stuck, commits
        What happens.
    markers
        Whether a transaction's marker stands at the end of each log: lag 1 at rest.
    eager
        Whether every partition stands still at each rebalance, not only those that move.
    events
        How many times what a planner could react to changes: what plans are counted against.
    """

    name: str
    what: str
    kind: Kind
    traffic: Traffic = field(default_factory=Traffic)
    speeds: tuple[float, ...] = (100.0,) * 10
    absent: tuple[int, ...] = ()
    topics: tuple[int, ...] = (100,)
    slow: tuple[Slow, ...] = ()
    changes: tuple[Change, ...] = ()
    growth: tuple[Growth, ...] = ()
    stuck: tuple[Stuck, ...] = ()
    commits: Commits = field(default_factory=Commits)
    markers: bool = False
    eager: bool = False
    events: int = 1

    @cached_property
    def final_counts(self) -> tuple[int, ...]:
        """Partitions of each topic at the end."""
        counts = list(self.topics)
        for growth in sorted(self.growth, key=lambda growth: growth.at_s):
            counts[growth.topic] = max(counts[growth.topic], growth.partitions)
        return tuple(counts)

    @property
    def members(self) -> tuple[str, ...]:
        """Names, in order."""
        return tuple(f"member-{number:02}" for number in range(len(self.speeds)))

    @property
    def topic_names(self) -> tuple[str, ...]:
        """Names, in order."""
        return tuple(f"topic-{number:02}" for number in range(len(self.topics)))


def rolling_restart(
    members: int, from_s: float, *, every_s: float = 120.0, away_s: float = 60.0
) -> tuple[Change, ...]:
    """Let every member in turn be away for a while, and come back by the same name."""
    starts = [from_s + number * every_s for number in range(members)]
    if any(after - before < away_s for before, after in pairwise(starts)):
        raise ValueError("a rolling restart takes one member away at a time")
    return tuple(
        Change(at, member, joins)
        for member, start in enumerate(starts)
        for at, joins in ((start, False), (start + away_s, True))
    )
