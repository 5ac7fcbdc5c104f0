"""Scenarios: machines, clients, topics, commits and faults of a group."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import numpy as np

from benchmarks.simulation.churn import MemberChange
from benchmarks.simulation.costs import TrueCosts
from benchmarks.simulation.crawling import Crawl
from benchmarks.simulation.misses import Misses
from benchmarks.simulation.report_habit import ReportHabit
from benchmarks.simulation.traffic import Traffic

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
class Growth:
    """A topic that gets more partitions: so many from then on."""

    at_s: float
    topic: int
    partitions: int


@dataclass(frozen=True)
class Stuck:
    """A partition that is read, but that nobody commits for a while; seconds from the start."""

    partition: int
    from_s: float = 0.0
    until_s: float = np.inf


@dataclass(frozen=True)
class Spoil:
    """Partitions that make whoever reads one of them do a share of its speed, but for their home.

    What no look at the group before a plan can tell: records that are dear to others than their
    home, whose cache is warm, say.

    Parameters
    ----------
    partitions, home
        Which, and the member that reads them as it reads all else; None: nobody does.
    share
        Of the speed.
    most
        Who owns no more than so many of them is not slowed down.
    """

    partitions: tuple[int, ...]
    home: int | None
    share: float
    most: int = 0


@dataclass(frozen=True)
class CommitHabit:
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
    reads
        Numbers of the topics that each member reads; none: everybody reads everything.
    client
        The kind of consumer, by its name in `sharing.clients`: how members share their time.
    record_bytes
        Of a record in a log: how many a chunk of 1 MiB holds.
    costs
        What a record takes.
    slow, spoils, changes, growth, stuck, crawling, commits
        What happens.
    misses
        What looks miss.
    reports
        How consumers work and report, where a controller reads reports.
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
    reads: tuple[tuple[int, ...], ...] = ()
    client: str = "proportional"
    record_bytes: float = 1000.0
    costs: TrueCosts = field(default_factory=TrueCosts)
    slow: tuple[Slow, ...] = ()
    spoils: tuple[Spoil, ...] = ()
    changes: tuple[MemberChange, ...] = ()
    growth: tuple[Growth, ...] = ()
    stuck: tuple[Stuck, ...] = ()
    crawling: tuple[Crawl, ...] = ()
    commits: CommitHabit = field(default_factory=CommitHabit)
    misses: Misses = field(default_factory=Misses)
    reports: ReportHabit = field(default_factory=ReportHabit)
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
        width = max(len(str(len(self.speeds) - 1)), 2)  # so that Kafka's order is that of numbers
        return tuple(f"member-{number:0{width}}" for number in range(len(self.speeds)))

    @property
    def topic_names(self) -> tuple[str, ...]:
        """Names, in order."""
        return tuple(f"topic-{number:02}" for number in range(len(self.topics)))
