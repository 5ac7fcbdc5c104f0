"""Scenarios: the machines, clients, topics, commits and faults of a simulated consumer group."""

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

#: What a planner should do. `healthy`: make no plan. `steady`: make one plan that lasts.
#: `changing`: follow changes. `hopeless`: report that no assignment helps, and make no plan.
Kind = Literal["healthy", "steady", "changing", "hopeless"]


@dataclass(frozen=True)
class Slow:
    """A member that is slow for a while: only the `share` of its speed remains."""

    member: int
    share: float
    from_s: float = 0.0
    until_s: float = np.inf


@dataclass(frozen=True)
class Growth:
    """A topic that has this number of partitions from `at_s` seconds after the start."""

    at_s: float
    topic: int
    partitions: int


@dataclass(frozen=True)
class Stuck:
    """A partition that is read but not committed for a while. Times are seconds from the start."""

    partition: int
    from_s: float = 0.0
    until_s: float = np.inf


@dataclass(frozen=True)
class Spoil:
    """Partitions that slow down every member that owns them, except the member `home`.

    For example, `home` has a warm cache for these records, and other members do not. Samples from
    the time before a plan cannot show how much the partitions will slow down another member.

    Parameters
    ----------
    partitions, home
        The partitions, and the member that they do not slow down; None: they slow down all members.
    share
        Share of its speed that a slowed member still has.
    most
        Maximum number of these partitions that a member can own without becoming slower.
    """

    partitions: tuple[int, ...]
    home: int | None
    share: float
    most: int = 0


@dataclass(frozen=True)
class CommitHabit:
    """How often consumers commit, and whether all commit at the same times (`together`)."""

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
        Determines the planner's goals in this scenario (`benchmarks.loop_goals`).
    traffic
        The arrivals.
    speeds
        Records of usual cost that each member can process per second.
    absent
        Members that are absent at the start.
    topics
        Number of partitions of each topic at the start.
    reads
        Numbers of the topics that each member reads. Empty: all members read all topics.
    client
        Name of the client in `sharing.clients`; it determines how members share their time.
    record_bytes
        Size of a record in the log, which determines how many records a fetch of 1 MiB returns.
    costs
        The costs of records.
    slow, spoils, changes, growth, stuck, crawling
        Changes and faults.
    commits
        How consumers commit.
    misses
        The values that samples lack.
    reports
        How consumers work and report, for controllers that read reports.
    markers
        Whether each log ends with a transaction marker, so that lag is 1 when all records are read.
    eager
        Whether all partitions pause at each rebalance, not only those that move.
    events
        Number of changes to which a planner could react. With each of them, the goals allow more
        plans.
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
        """Number of partitions of each topic at the end."""
        counts = list(self.topics)
        for growth in sorted(self.growth, key=lambda growth: growth.at_s):
            counts[growth.topic] = max(counts[growth.topic], growth.partitions)
        return tuple(counts)

    @property
    def members(self) -> tuple[str, ...]:
        """Names of the members, in Kafka's order."""
        width = max(len(str(len(self.speeds) - 1)), 2)  # padded, as Kafka orders names as text
        return tuple(f"member-{number:0{width}}" for number in range(len(self.speeds)))

    @property
    def topic_names(self) -> tuple[str, ...]:
        """Names of the topics, in Kafka's order."""
        return tuple(f"topic-{number:02}" for number in range(len(self.topics)))
