"""Random groups of which it is known what is the matter, and from when on.

Belongs here: drawing them so that their cause cannot be disputed. Does not: judging the answers
(`scoring`).

Every group begins healthy: under `range` nobody is used above `_CALM`. At a moment something
happens, or nothing does; it makes some member's utilisation at least `_CLEAR`, where the cause is
one of too much work, and never leaves anybody between the two.
"""

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from fairlead.domain.judgement.diagnosis import Name
from fairlead.simulation.scenario import Commits, Scenario, Slow, Stuck
from fairlead.simulation.traffic import HOUR_S, Float64, Surge, Traffic

_CALM: Final = 0.85
_CLEAR: Final = 1.15
CAUSES: Final[tuple[Name, ...]] = (
    "healthy",
    "badly spread",
    "slow member",
    "overloaded",
    "hot partition",
    "stuck partition",
    "unknown",
)
HOURS: Final = 6.0


@dataclass(frozen=True)
class Labelled:
    """A scenario, and what is the matter with it.

    Parameters
    ----------
    scenario
        What happens.
    cause
        The right diagnosis while nothing is done about it; `unknown`: a member commits nothing.
    names
        Of whom or what.
    since_s
        From when on, seconds from the start.
    """

    scenario: Scenario
    cause: Name
    names: frozenset[str]
    since_s: float


def random_scenario(number: int) -> Labelled:
    """Draw a group; equal numbers give equal groups, and causes take turns."""
    rng = np.random.default_rng((7, number))
    cause = CAUSES[number % len(CAUSES)]
    while True:
        found = _Draw(number, cause, rng).labelled()
        if found is not None:
            return found


class _Draw:
    """One attempt: a calm group under `range`, and something that happens to it."""

    def __init__(self, number: int, cause: Name, rng: np.random.Generator) -> None:
        self.rng, self.cause = rng, cause
        self.members = int(rng.integers(4, 15))
        self.each = int(rng.integers(3, 11))
        self.since_s = float(rng.uniform(1.0, 2.0)) * HOUR_S
        speed = float(rng.choice([50.0, 100.0, 400.0]))
        self.speeds = speed * rng.uniform(0.92, 1.08, self.members)
        commit_s = float(rng.choice([5.0, 5.0, 5.0, 30.0, 120.0]))
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
            commits=Commits(commit_s, together=bool(rng.integers(5) == 0)),
        )

    def labelled(self) -> Labelled | None:
        """Return the group with its label; None: this draw was not clear."""
        rates = self.rates(self.scenario)
        if (self.used(rates) > _CALM).any():
            return None
        drawn = {
            "healthy": self.nothing,
            "badly spread": self.surge_of_members,
            "slow member": self.slow_member,
            "overloaded": self.surge_of_all,
            "hot partition": self.hot_partition,
            "stuck partition": self.stuck_partition,
            "unknown": self.silent_member,
        }[self.cause](rates)
        if drawn is None:
            return None
        scenario, names = drawn
        return Labelled(scenario, self.cause, frozenset(names), self.since_s)

    def rates(self, scenario: Scenario) -> Float64:
        """Rates of the partitions at the start, shape (P,)."""
        exists = np.ones((1, scenario.topics[0]), dtype=bool)
        rates: Float64 = scenario.traffic.rates(np.zeros(1), exists, sum(scenario.speeds))[0]
        return rates

    def used(self, rates: Float64, speeds: Float64 | None = None) -> Float64:
        """Utilisation of each member under `range`, shape (M,)."""
        arrivals = rates.reshape(self.members, self.each).sum(axis=1)
        used: Float64 = arrivals / (self.speeds if speeds is None else speeds)
        return used

    def surged(self, surges: tuple[Surge, ...]) -> Scenario:
        """Return the scenario with surges."""
        return replace(self.scenario, traffic=replace(self.scenario.traffic, surges=surges))

    def name(self, partition: int) -> str:
        """Name a partition."""
        return f"{self.scenario.topic_names[0]}-{partition}"

    def nothing(self, _: Float64) -> tuple[Scenario, list[str]] | None:
        """Nothing happens."""
        return self.scenario, []

    def surge_of_members(self, rates: Float64) -> tuple[Scenario, list[str]] | None:
        """One or two members' partitions get more, while others have room."""
        chosen = self.rng.choice(self.members, int(self.rng.integers(1, 3)), replace=False)
        wanted = self.rng.uniform(1.2, 1.6, chosen.size)
        factors = wanted / self.used(rates)[chosen]
        surges = tuple(
            Surge(self.of(int(member)), float(factor), self.since_s)
            for member, factor in zip(chosen, factors, strict=True)
        )
        after = rates.copy()
        for surge in surges:
            after[list(surge.partitions)] *= surge.factor
        # Others have room, and every partition is small enough to go there.
        if after.sum() > 0.8 * self.speeds.sum() or after.max() > 0.5 * self.speeds.min():
            return None
        return self.surged(surges), [self.scenario.members[int(member)] for member in chosen]

    def of(self, member: int) -> tuple[int, ...]:
        """Partitions of a member under `range`."""
        return tuple(range(member * self.each, (member + 1) * self.each))

    def slow_member(self, rates: Float64) -> tuple[Scenario, list[str]] | None:
        """One member gets slow."""
        member = int(self.rng.integers(self.members))
        share = float(self.rng.uniform(0.2, 0.55))
        speeds = self.speeds.copy()
        speeds[member] *= share
        if self.used(rates, speeds)[member] < _CLEAR or rates.sum() > 0.85 * speeds.sum():
            return None
        slow = (Slow(member, share, self.since_s),)
        return replace(self.scenario, slow=slow), [self.scenario.members[member]]

    def surge_of_all(self, rates: Float64) -> tuple[Scenario, list[str]] | None:
        """More arrives than all can do, and nobody is left who keeps up with ease."""
        factor = float(self.rng.uniform(1.2, 1.6)) * self.speeds.sum() / rates.sum()
        if (rates * factor).max() > 0.8 * self.speeds.min():
            return None
        everything = tuple(range(rates.size))
        return self.surged((Surge(everything, float(factor), self.since_s),)), []

    def hot_partition(self, rates: Float64) -> tuple[Scenario, list[str]] | None:
        """One partition gets more than the fastest member can do; the group could."""
        partition = int(self.rng.integers(rates.size))
        wanted = float(self.rng.uniform(1.25, 2.0)) * self.speeds.max()
        if rates.sum() + wanted > 0.85 * self.speeds.sum():
            return None
        factor = float(wanted / rates[partition])
        return self.surged((Surge((partition,), factor, self.since_s),)), [self.name(partition)]

    def stuck_partition(self, rates: Float64) -> tuple[Scenario, list[str]] | None:
        """One partition is not committed any more, read or not."""
        partition = int(self.rng.integers(rates.size))
        consumed = bool(self.rng.integers(2))
        stuck = (Stuck(partition, consumed=consumed, from_s=self.since_s),)
        return replace(self.scenario, stuck=stuck), [self.name(partition)]

    def silent_member(self, _: Float64) -> tuple[Scenario, list[str]] | None:
        """One member commits nothing any more."""
        member = int(self.rng.integers(self.members))
        stuck = tuple(Stuck(partition, from_s=self.since_s) for partition in self.of(member))
        return replace(self.scenario, stuck=stuck), [self.scenario.members[member]]
