"""What happens to a group, whoever reads: what arrives, how fast members are, who is there.

Belongs here: everything that does not depend on who reads what, and drawing it from a scenario by a
seed. Does not: what does depend (`consumption`, `loop`), or taking it from a recording
(`fairlead.surfaces.backtest`).
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from fairlead.simulation.crawling import limits
from fairlead.simulation.scenario import Scenario, Spoil
from fairlead.simulation.traffic import Float64

Int64 = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Roster:
    """Everybody and everything that is ever there: M members, T topics, P partitions.

    Parameters
    ----------
    members, topics
        Names, in Kafka's order.
    counts
        The most partitions each topic ever has.
    subscribed
        Who reads what, bool of shape (M, T).
    commit_s
        Seconds between a member's commits.
    client, record_bytes
        The kind of consumer by its name, and how large a record is.
    markers
        Whether a transaction's marker stands at the end of each log: lag 1 at rest.
    eager
        Whether every partition stands still at each rebalance, not only those that move.
    spoils
        What makes members slow that own it.
    """

    members: tuple[str, ...]
    topics: tuple[str, ...]
    counts: tuple[int, ...]
    subscribed: Mask
    commit_s: float = 5.0
    client: str = "proportional"
    record_bytes: float = 1000.0
    markers: bool = False
    eager: bool = False
    spoils: tuple[Spoil, ...] = ()

    @classmethod
    def of(cls, scenario: Scenario) -> "Roster":
        """Return a scenario's."""
        subscribed = np.zeros((len(scenario.members), len(scenario.topics)), dtype=bool)
        for member in range(len(subscribed)):
            subscribed[member, list(scenario.reads[member]) if scenario.reads else slice(None)] = (
                True
            )
        return cls(
            members=scenario.members,
            topics=scenario.topic_names,
            counts=scenario.final_counts,
            subscribed=subscribed,
            commit_s=scenario.commits.every_s,
            client=scenario.client,
            record_bytes=scenario.record_bytes,
            markers=scenario.markers,
            eager=scenario.eager,
            spoils=scenario.spoils,
        )


@dataclass(frozen=True, eq=False)
class World:
    """N steps of P partitions and M members.

    Parameters
    ----------
    roster
        Whose world it is.
    step_s
        Seconds a step.
    rates
        True arrival rates, records a second, float64 of shape (N, P).
    arrivals
        Records that arrive in each step, int64 of shape (N, P).
    costs
        What a record takes, in records of the usual kind, float64 of shape (N, P).
    limits
        Records a second that can be read at most, whoever reads; inf: as many as there are. (N, P).
    speeds
        Records of the usual kind a second of each member, float64 of shape (N, M).
    exists
        Which partitions exist, bool of shape (N, P).
    present
        Which members are there, bool of shape (N, M).
    uncommitted
        Which partitions nobody commits, bool of shape (N, P).
    unseen, ownerless
        What looks miss: the ends of partitions, bool of shape (N, P), and all owners, (N,).
    phases
        When each member commits: seconds past each multiple of the interval, shape (M,).
    turns
        The order in which partitions are fetched at first, a permutation, int64 of shape (P,).
    first
        Log end offsets at the start, int64 of shape (P,).
    waiting
        Records that wait at the start, float64 of shape (P,).
    """

    roster: Roster
    step_s: float
    rates: Float64
    arrivals: Int64
    costs: Float64
    limits: Float64
    speeds: Float64
    exists: Mask
    present: Mask
    uncommitted: Mask
    unseen: Mask
    ownerless: Mask
    phases: Float64
    turns: Int64
    first: Int64
    waiting: Float64

    @classmethod
    def of(
        cls, scenario: Scenario, *, seed: int = 0, hours: float = 48.0, step_s: float = 10.0
    ) -> "World":
        """Draw a scenario: arrivals are Poisson's. Equal seeds give equal worlds.

        How much arrives is a share of what the members of the start can do, by what records take
        then.
        """
        steps = round(hours * 3600 / step_s)
        at = np.arange(steps, dtype=np.float64) * step_s
        rng = np.random.default_rng(seed)
        exists = _exists(scenario, at)
        partitions = exists.shape[1]
        start = np.delete(np.array(scenario.speeds), list(scenario.absent))
        rates = scenario.traffic.rates(at, exists, float(start.sum()))
        costs = scenario.costs.over(at, partitions)
        rates *= rates[0].sum() / (rates[0] * costs[0]).sum()
        phases = rng.uniform(0, scenario.commits.every_s, len(scenario.speeds))
        arrivals = rng.poisson(rates * step_s)
        unseen, ownerless = scenario.misses.of(rng, steps, partitions)
        return cls(
            roster=Roster.of(scenario),
            step_s=step_s,
            rates=rates,
            arrivals=arrivals,
            costs=costs,
            limits=limits(scenario.crawling, at, partitions),
            speeds=_speeds(scenario, at),
            exists=exists,
            present=_present(scenario, at),
            uncommitted=_uncommitted(scenario, at),
            unseen=unseen,
            ownerless=ownerless,
            phases=np.full_like(phases, phases[0]) if scenario.commits.together else phases,
            turns=rng.permutation(partitions),
            first=np.zeros(partitions, np.int64),
            waiting=np.zeros(partitions),
        )

    @property
    def steps(self) -> int:
        """N."""
        return len(self.arrivals)

    @property
    def partitions(self) -> int:
        """P."""
        return int(self.arrivals.shape[1])

    @cached_property
    def ends(self) -> Int64:
        """Log end offsets at the start of each step and at the end, int64 of shape (N + 1, P)."""
        ends = np.zeros((self.steps + 1, self.partitions), np.int64)
        np.cumsum(self.arrivals, axis=0, out=ends[1:])
        return ends + self.first

    @cached_property
    def work(self) -> Float64:
        """What arrives and can be read, in records of the usual kind a second, shape (N, P)."""
        return np.minimum(self.rates, self.limits) * self.costs

    @cached_property
    def topic_of(self) -> Int64:
        """Topic of each partition, int64 of shape (P,)."""
        counts = self.roster.counts
        return np.repeat(np.arange(len(counts)), counts)

    @cached_property
    def changed(self) -> Int64:
        """Steps before which the group changes, so that it rebalances; 0 among them."""
        who = (np.diff(self.present, axis=0)).any(axis=1)
        what = (np.diff(self.exists, axis=0)).any(axis=1)
        return np.concatenate(([0], np.flatnonzero(who | what) + 1))


def _exists(scenario: Scenario, at: Float64) -> Mask:
    counts = np.tile(np.array(scenario.topics), (at.size, 1))
    for growth in scenario.growth:
        counts[at >= growth.at_s, growth.topic] = growth.partitions
    columns = [
        np.arange(final)[None, :] < counts[:, topic, None]
        for topic, final in enumerate(scenario.final_counts)
    ]
    return np.concatenate(columns, axis=1)


def _speeds(scenario: Scenario, at: Float64) -> Float64:
    speeds = np.tile(np.array(scenario.speeds), (at.size, 1))
    for slow in scenario.slow:
        speeds[(at >= slow.from_s) & (at < slow.until_s), slow.member] *= slow.share
    return speeds


def _present(scenario: Scenario, at: Float64) -> Mask:
    present = np.ones((at.size, len(scenario.speeds)), dtype=bool)
    present[:, list(scenario.absent)] = False
    for change in sorted(scenario.changes, key=lambda change: change.at_s):
        present[at >= change.at_s, change.member] = change.joins
    return present


def _uncommitted(scenario: Scenario, at: Float64) -> Mask:
    uncommitted = np.zeros((at.size, sum(scenario.final_counts)), dtype=bool)
    for stuck in scenario.stuck:
        uncommitted[(at >= stuck.from_s) & (at < stuck.until_s), stuck.partition] = True
    return uncommitted
