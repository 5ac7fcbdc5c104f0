"""Arrivals, members and costs of a scenario, which are the same under every controller."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from benchmarks.simulation.crawling import limits
from benchmarks.simulation.scenario import Scenario
from fairlead.simulation.world import Float64, Int64, Mask, Roster, World


@dataclass(frozen=True, eq=False)
class ScenarioWorld(World):
    """N steps of P partitions and M members, drawn from a scenario.

    Parameters
    ----------
    scenario
        The scenario.
    rates
        True arrival rates in records per second, float64 of shape (N, P).
    costs
        Cost of a record, as a multiple of the usual cost, float64 of shape (N, P).
    limits
        Maximum number of records per second that an owner can read of each partition. It is the
        same for all owners; shape (N, P); inf: no limit.
    uncommitted
        Whether the owner of a partition does not commit it, bool of shape (N, P).
    unseen, ownerless
        Whether a sample lacks a partition's end offset, shape (N, P); whether it lacks all owners,
        shape (N,).
    turns
        Rank of each partition in the first fetches, a permutation, int64 of shape (P,).
    """

    scenario: Scenario
    rates: Float64
    costs: Float64
    limits: Float64
    uncommitted: Mask
    unseen: Mask
    ownerless: Mask
    turns: Int64

    @classmethod
    def of(
        cls, scenario: Scenario, *, seed: int = 0, hours: float = 48.0, step_s: float = 10.0
    ) -> "ScenarioWorld":
        """Draw Poisson arrivals and other random values. Equal seeds give equal worlds.

        Rates are scaled by the mean cost of a record at the start, so that expensive records do not
        increase the work that arrives.
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
            scenario=scenario,
            roster=_roster(scenario),
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

    @cached_property
    def work(self) -> Float64:
        """Arrival rates up to the limits, in records of usual cost per second, shape (N, P)."""
        return np.minimum(self.rates, self.limits) * self.costs


def _roster(scenario: Scenario) -> Roster:
    subscribed = np.zeros((len(scenario.members), len(scenario.topics)), dtype=bool)
    for member in range(len(subscribed)):
        subscribed[member, list(scenario.reads[member]) if scenario.reads else slice(None)] = True
    return Roster(
        members=scenario.members,
        topics=scenario.topic_names,
        counts=scenario.final_counts,
        subscribed=subscribed,
        commit_s=scenario.commits.every_s,
    )


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
