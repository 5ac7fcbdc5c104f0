"""Random groups that fall behind for a known cause at a known time.

Belongs here: drawing groups whose right diagnosis is beyond dispute. Belongs elsewhere: deciding
whether a diagnosis is right (`scoring`).

Every group begins healthy: with Kafka's `range` assignor, no member's utilisation is above `_CALM`.
Later something may happen that puts the group behind: the cause. If the cause is too much work, the
utilisation of some members rises to `_CLEAR` or more, and no member's utilisation is between
`_CALM` and `_CLEAR`.

In plain groups, all records have equal costs, members read their partitions in proportion to the
records that wait, and samples are complete. Real groups have 2 to 300 members, any client, and
samples with missing values. In some real groups, costs vary, or two kinds of members read different
topics. In others, members are replaced, unless the cause is a member.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from benchmarks.simulation.churn import replacements
from benchmarks.simulation.costs import Expensive, TrueCosts
from benchmarks.simulation.crawling import Crawl
from benchmarks.simulation.misses import Misses
from benchmarks.simulation.report_habit import ReportHabit
from benchmarks.simulation.scenario import CommitHabit, Scenario, Slow, Stuck
from benchmarks.simulation.sharing.clients import CLIENTS
from benchmarks.simulation.traffic import HOUR_S, Surge, Traffic
from benchmarks.simulation.world import ScenarioWorld
from fairlead.simulation.world import Float64

_CALM: Final = 0.85
_CLEAR: Final = 1.15
CAUSES: Final = (
    "healthy",
    "unbalanced",
    "slow member",
    "overloaded",
    "hot partition",
    "stuck partition",
    "unknown",
)
REAL_CAUSES: Final = (*CAUSES, "throttled partition")
#: Causes for groups whose consumers report how long they process records.
REPORTED_CAUSES: Final = (*REAL_CAUSES, "expensive partition")
#: Flaws of reports, and ways to process records that make reports wrong: fields of `ReportHabit`.
FLAWS: Final[tuple[Mapping[str, Any], ...]] = (
    {"application": "flush"},
    {"application": "collect"},
    {"application": "workers"},
    {"application": "tasks"},
    {"silent": 0.5},
    {"missing": 0.3},
    {"stale": 0.3},
    {"impossible": 0.1},
    {"noise": 1.0, "lying": 0.3},
    {"spread": 2.0},
)
#: Chance that a group's reports have a second flaw.
_ANOTHER: Final = 0.3
HOURS: Final = 6.0
#: Maximum number of partitions of a group, so that its analysis takes seconds.
_PARTITIONS: Final = 1200
#: Causes that are not tied to a member, and so remain if members are replaced.
_WHOEVER_READS: Final = frozenset(
    {"healthy", "overloaded", "hot partition", "stuck partition", "throttled partition"}
)
#: Groups whose members are replaced have at least this number of members, so that the remaining
#: members have room for the work of an absent member.
_MANY: Final = 12


@dataclass(frozen=True)
class Labelled:
    """A scenario with its right diagnosis.

    Parameters
    ----------
    scenario
        The scenario.
    cause
        The right diagnosis as long as no plan is published; `unknown`: a member commits nothing.
    names
        The members or partitions that the diagnosis must name.
    since_s
        When the cause begins, seconds from the start.
    """

    scenario: Scenario
    cause: str
    names: frozenset[str]
    since_s: float


def random_scenario(number: int, *, real: bool = False, causes: Sequence[str] = ()) -> Labelled:
    """Generate a random group. `number` is the seed; the cause is `causes[number % len(causes)]`.

    Parameters
    ----------
    causes
        The causes to choose from. If empty: `REAL_CAUSES` for real groups, else `CAUSES`.
    """
    rng = np.random.default_rng((8 if real else 7, number))
    causes = causes or (REAL_CAUSES if real else CAUSES)
    cause = causes[number % len(causes)]
    while True:
        found = _Draw(number, cause, rng, real=real).labelled()
        if found is not None:
            return found


def random_reports(number: int) -> ReportHabit:
    """Choose at random how consumers work and report, with one or two flaws.

    `number` determines the first flaw.
    """
    rng = np.random.default_rng((9, number))
    found = ReportHabit(seed=number, spread=float(rng.choice([0.3, 0.3, 1.0, 2.0])))
    changes = [FLAWS[number % len(FLAWS)]]
    if rng.random() < _ANOTHER:
        changes.append(FLAWS[int(rng.integers(len(FLAWS)))])
    for change in changes:
        found = replace(found, **change)
    return found


class _Draw:
    """One attempt to generate a random healthy group, and the reason why it falls behind later."""

    def __init__(self, number: int, cause: str, rng: np.random.Generator, *, real: bool) -> None:
        self.rng, self.cause = rng, cause
        self.members = int(np.exp(rng.uniform(*np.log([2, 301]))) if real else rng.integers(4, 15))
        self.each = min(int(rng.integers(3, 11)), _PARTITIONS // self.members)
        self.since_s = float(rng.uniform(1.0, 2.0)) * HOUR_S
        speed = float(rng.choice([50.0, 100.0, 400.0]))
        self.speeds = speed * rng.uniform(0.92, 1.08, self.members)
        commit_s = float(rng.choice([5.0, 5.0, 5.0, 30.0, 120.0]))
        #: Kind of each member, 0 or 1. Kinds read different topics; kind 1 is ten times as fast.
        self.kind = np.zeros(self.members, np.int64)
        self.scenario = Scenario(
            name=f"random-{number}",
            what=f"a random group: {cause}",
            kind="healthy" if cause == "healthy" else "steady",
            traffic=Traffic(
                used=float(rng.uniform(0.35, 0.75)),
                zipf=float(rng.uniform(0.0, 0.5)),
                shuffle=int(rng.integers(1 << 30)),
            ),
            speeds=tuple(self.speeds.tolist()),
            topics=(self.members * self.each,),
            commits=CommitHabit(commit_s, together=bool(rng.integers(5) == 0)),
        )
        if real:
            self.scenario = replace(self.scenario, name=f"real-{number}", **self.real())

    def real(self) -> dict[str, Any]:
        """Choose at random the fields of `Scenario` in which real groups differ from plain ones."""
        rng = self.rng
        unseen = float(rng.choice([0.0, 0.02, 0.1]))
        costs = TrueCosts(float(rng.choice([0.0, 0.0, 0.3, 0.8])), int(rng.integers(1 << 30)))
        common = {
            "client": str(rng.choice(list(CLIENTS))),
            "record_bytes": float(rng.choice([200.0, 1000.0, 10_000.0])),
            "misses": Misses(leader=unseen, coordinator=unseen / 2),
        }
        feature = int(rng.integers(3))
        if feature == 1 and self.members >= 4:
            return {**common, **self.two_kinds(), "costs": costs}
        if feature == 2 and self.members >= _MANY and self.cause in _WHOEVER_READS:
            return {**common, **self.churn()}
        return {**common, "costs": costs}

    def two_kinds(self) -> dict[str, Any]:
        """Make half of the members ten times as fast, with a topic of their own.

        The partitions of this topic get ten times as many records.
        """
        self.kind[self.members // 2 :] = 1
        before = self.speeds
        self.speeds = before * np.where(self.kind == 1, 10, 1)
        second = tuple(np.flatnonzero(np.repeat(self.kind, self.each)).tolist())
        return {
            "traffic": replace(
                self.scenario.traffic,
                used=self.scenario.traffic.used * float(before.sum() / self.speeds.sum()),
                surges=(Surge(second, 10.0, 0.0),),
            ),
            "speeds": tuple(self.speeds.tolist()),
            "topics": tuple((np.bincount(self.kind) * self.each).tolist()),
            "reads": tuple((kind,) for kind in self.kind.tolist()),
        }

    def churn(self) -> dict[str, Any]:
        """Replace a quarter of the members; give partitions equal rates, since owners change."""
        new_members = self.members // 4
        every_s = (HOURS - 1) * HOUR_S / new_members
        return {
            "traffic": replace(self.scenario.traffic, zipf=0.0),
            "speeds": (*self.speeds.tolist(), *self.speeds[:new_members].tolist()),
            "absent": tuple(range(self.members, self.members + new_members)),
            "changes": replacements(
                self.members, new_members, from_s=0.55 * HOUR_S, every_s=every_s
            ),
        }

    def labelled(self) -> Labelled | None:
        """Return the group with its right diagnosis; None if this diagnosis is disputable."""
        work = self.work()
        if (self.used(work) > _CALM).any():
            return None
        drawn = {
            "healthy": self.nothing,
            "unbalanced": self.surge_of_members,
            "slow member": self.slow_member,
            "overloaded": self.surge_of_all,
            "hot partition": self.hot_partition,
            "stuck partition": self.stuck_partition,
            "throttled partition": self.throttled_partition,
            "unknown": self.silent_member,
            "expensive partition": self.expensive_partition,
        }[self.cause](work)
        if drawn is None:
            return None
        scenario, names = drawn
        return Labelled(scenario, self.cause, frozenset(names), self.since_s)

    def work(self) -> Float64:
        """Return the arrivals at the start, in records of usual cost per second, shape (P,)."""
        work: Float64 = ScenarioWorld.of(self.scenario, hours=10 / HOUR_S).work[0]
        return work

    def used(self, work: Float64, speeds: Float64 | None = None) -> Float64:
        """Return the utilisation of each member under `range`, shape (M,)."""
        arrivals = work.reshape(self.members, self.each).sum(axis=1)
        used: Float64 = arrivals / (self.speeds if speeds is None else speeds)
        return used

    def fits(self, work: Float64, speeds: Float64, share: float) -> bool:
        """Return whether the total utilisation of each kind of members is at most `share`."""
        used = np.bincount(np.repeat(self.kind, self.each), work) / np.bincount(self.kind, speeds)
        return bool((used <= share).all())

    def small(self, work: Float64, share: float) -> bool:
        """Return whether each partition takes at most `share` of the slowest reader's speed."""
        slowest = np.array([self.speeds[self.kind == kind].min() for kind in self.kind])
        return bool((work <= share * np.repeat(slowest, self.each)).all())

    def surged(self, surges: tuple[Surge, ...]) -> Scenario:
        """Return the scenario with these surges added."""
        traffic = self.scenario.traffic
        surges = (*traffic.surges, *surges)
        return replace(self.scenario, traffic=replace(traffic, surges=surges))

    def name(self, partition: int) -> str:
        """Return a partition's name."""
        kind = int(self.kind[partition // self.each])
        before = sum(self.scenario.topics[:kind])
        return f"{self.scenario.topic_names[kind]}-{partition - before}"

    def nothing(self, _: Float64) -> tuple[Scenario, list[str]] | None:
        """Return the scenario unchanged: a healthy group."""
        return self.scenario, []

    def surge_of_members(self, work: Float64) -> tuple[Scenario, list[str]] | None:
        """Add arrivals to the partitions of one or two random members, while others have room."""
        chosen = self.rng.choice(self.members, int(self.rng.integers(1, 3)), replace=False)
        wanted = self.rng.uniform(1.2, 1.6, chosen.size)
        factors = wanted / self.used(work)[chosen]
        surges = tuple(
            Surge(self.of(int(member)), float(factor), self.since_s)
            for member, factor in zip(chosen, factors, strict=True)
        )
        after = work.copy()
        for surge in surges:
            after[list(surge.partitions)] *= surge.factor
        # Accept only if members together have room, and every partition is small enough to move.
        if not self.fits(after, self.speeds, 0.8) or not self.small(after, 0.5):
            return None
        return self.surged(surges), [self.scenario.members[int(member)] for member in chosen]

    def of(self, member: int) -> tuple[int, ...]:
        """Return a member's partitions under `range`."""
        return tuple(range(member * self.each, (member + 1) * self.each))

    def slow_member(self, work: Float64) -> tuple[Scenario, list[str]] | None:
        """Choose a random member that becomes slow."""
        member = int(self.rng.integers(self.members))
        share = float(self.rng.uniform(0.2, 0.55))
        speeds = self.speeds.copy()
        speeds[member] *= share
        if self.used(work, speeds)[member] < _CLEAR or not self.fits(work, speeds, 0.85):
            return None
        slow = (Slow(member, share, self.since_s),)
        return replace(self.scenario, slow=slow), [self.scenario.members[member]]

    def surge_of_all(self, work: Float64) -> tuple[Scenario, list[str]] | None:
        """Raise arrivals above what all members together can process."""
        kinds = np.repeat(self.kind, self.each)
        wanted = float(self.rng.uniform(1.2, 1.6))
        factors = wanted * np.bincount(self.kind, self.speeds) / np.bincount(kinds, work)
        if not self.small(work * factors[kinds], 0.8):
            return None
        surges = tuple(
            Surge(tuple(np.flatnonzero(kinds == kind).tolist()), float(factor), self.since_s)
            for kind, factor in enumerate(factors)
        )
        return self.surged(surges), []

    def hot_partition(self, work: Float64) -> tuple[Scenario, list[str]] | None:
        """Choose a random partition; it gets more arrivals than its fastest reader can process."""
        partition = int(self.rng.integers(work.size))
        readers = self.kind == self.kind[partition // self.each]
        wanted = float(self.rng.uniform(1.25, 2.0)) * self.speeds[readers].max()
        after = work.copy()
        after[partition] += wanted
        if not self.fits(after, self.speeds, 0.85):
            return None
        factor = float(wanted / work[partition])
        return self.surged((Surge((partition,), factor, self.since_s),)), [self.name(partition)]

    def expensive_partition(self, work: Float64) -> tuple[Scenario, list[str]] | None:
        """Choose a random partition whose records become too expensive for its owner."""
        partition = int(self.rng.integers(work.size))
        member = partition // self.each
        wanted = float(self.rng.uniform(1.2, 1.6)) - self.used(work)[member]
        factor = 1.0 + float(wanted * self.speeds[member] / work[partition])
        after = work.copy()
        after[partition] *= factor
        if not self.fits(after, self.speeds, 0.8) or not self.small(after, 0.9):
            return None
        costs = self.scenario.costs
        expensive = (*costs.expensive, Expensive(factor, (partition,), self.since_s))
        costs = replace(costs, expensive=expensive)
        return replace(self.scenario, costs=costs), [self.name(partition)]

    def stuck_partition(self, work: Float64) -> tuple[Scenario, list[str]] | None:
        """Choose a random partition; its commits stop, and sometimes its reading, too."""
        partition = int(self.rng.integers(work.size))
        if self.rng.integers(2):
            stuck = (Stuck(partition, from_s=self.since_s),)
            return replace(self.scenario, stuck=stuck), [self.name(partition)]
        crawling = (Crawl(partition, from_s=self.since_s),)
        return replace(self.scenario, crawling=crawling), [self.name(partition)]

    def throttled_partition(self, work: Float64) -> tuple[Scenario, list[str]] | None:
        """Choose a random partition; each owner then reads it more slowly than records arrive."""
        partition = int(self.rng.integers(work.size))
        rates = ScenarioWorld.of(self.scenario, hours=10 / HOUR_S).rates[0]
        per_s = float(rates[partition] * self.rng.uniform(0.1, 0.6))
        crawling = (Crawl(partition, per_s, from_s=self.since_s),)
        return replace(self.scenario, crawling=crawling), [self.name(partition)]

    def silent_member(self, _: Float64) -> tuple[Scenario, list[str]] | None:
        """Choose a random member that stops committing."""
        member = int(self.rng.integers(self.members))
        stuck = tuple(Stuck(partition, from_s=self.since_s) for partition in self.of(member))
        return replace(self.scenario, stuck=stuck), [self.scenario.members[member]]
