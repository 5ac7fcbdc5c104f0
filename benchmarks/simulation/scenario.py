"""Scenarios define machines, clients, topics, commits and faults of a consumer group."""

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
"""What a planner should do: make no plan; make one plan that lasts; follow changes; report that no
assignment helps, and make no plan."""


@dataclass(frozen=True)
class Slow:
    """A member that works at a share of its speed for a while."""

    member: int
    share: float
    from_s: float = 0.0
    until_s: float = np.inf


@dataclass(frozen=True)
class Growth:
    """A topic that grows to a number of partitions."""

    at_s: float
    topic: int
    partitions: int


@dataclass(frozen=True)
class Stuck:
    """A partition that is read but not committed for a while; seconds from the start."""

    partition: int
    from_s: float = 0.0
    until_s: float = np.inf


@dataclass(frozen=True)
class Spoil:
    """Partitions that slow down any member that reads them, except their home.

    No sample before a plan can show this. For example, records are expensive for members other
    than their home, whose cache is warm.

    Parameters
    ----------
    partitions, home
        The partitions, and the member that they do not slow down; None: they slow down all members.
    share
        Remaining share of the speed.
    most
        Maximum number of these partitions that a member can own without becoming slower.
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
        The name, and a description in one line.
    kind
        What a planner should do in the scenario.
    traffic
        The arrivals.
    speeds
        Records a second of each machine, member by member.
    absent
        Members that are absent at the start.
    topics
        Partitions of each topic at the start.
    reads
        Numbers of the topics that each member reads; empty: all members read all topics.
    client
        The kind of client, by its name in `sharing.clients`: how members share their time.
    record_bytes
        Bytes of a record in a log, for the number of records in a chunk of 1 MiB.
    costs
        The costs of records.
    slow, spoils, changes, growth, stuck, crawling, commits
        The scenario's changes and faults.
    misses
        The values that samples miss.
    reports
        How consumers work and report, for controllers that read reports.
    markers
        Whether each log ends with a transaction's marker, so that lag is 1 at rest.
    eager
        Whether every partition pauses at each rebalance, not only those that move.
    events
        Number of changes that a planner could react to; plans are compared with this number.
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
        width = max(len(str(len(self.speeds) - 1)), 2)  # Kafka orders names as text
        return tuple(f"member-{number:0{width}}" for number in range(len(self.speeds)))

    @property
    def topic_names(self) -> tuple[str, ...]:
        """Names, in order."""
        return tuple(f"topic-{number:02}" for number in range(len(self.topics)))
