"""How well costs are known, over random members at their limit."""

from dataclasses import dataclass

import numpy as np
import pytest

from fairlead.domain.judgement.cost_equations import Costs, Equation
from fairlead.domain.judgement.cost_solver import solve
from fairlead.domain.judgement.looks import Float64, Mask
from tests.lengths import form

NOW = 1e9
MEMBERS = form(short=60, long=1000)


@dataclass
class Told:
    """How many costs had to be known, how many of these are, and how many intervals are right."""

    must: int = 0
    found: int = 0
    known: int = 0
    right: int = 0

    def add(self, costs: Costs, truth: Float64, must: Mask) -> None:
        """Count what is told of the first partitions, of which the truth is known."""
        low, _, high = costs.known()[: truth.size].T
        known = ~np.isnan(low)
        self.must += int(must.sum())
        self.found += int((must & known).sum())
        self.known += int(known.sum())
        self.right += int((known & (low <= truth) & (truth <= high)).sum())


def told_of(
    seed: int, noise: float, *, topics: bool = False, alone: bool = False, own: bool = False
) -> Told:
    """Let a member read partitions in ever other shares, beside two that are at rest."""
    rng = np.random.default_rng(seed)
    count = int(rng.integers(2, 9))
    costs, topic = np.ones(count), np.zeros(3 * count, np.int64)
    if topics:
        first = int(rng.integers(1, count))
        costs[first:], topic[first:] = np.exp(rng.uniform(-1.5, 2.5)), 1
    elif own:
        costs = np.exp(0.8 * rng.standard_normal(count))
    else:
        costs[rng.integers(count)] = np.exp(rng.uniform(1.1, 3.4))
    topic[count:] = topic[count - 1] + 1
    usual, speed, equations = rng.dirichlet(np.full(count, 3.0)), 100.0 * rng.uniform(0.7, 1.3), []
    shares = np.zeros((30, count))
    for stretch, share in enumerate(shares):
        share[:] = usual * np.exp(0.7 * rng.standard_normal(count))
        if topics:
            share[:] = usual * np.where(topic[:count] == 1, (1.0, 0.35, 2.5)[stretch % 3], 1.0)
        if alone:
            share[:] = np.arange(count) == stretch % count
        share[:] /= share.sum()
        work = 120.0 * speed * np.exp(noise * rng.standard_normal())
        read, at = np.flatnonzero(share), NOW - 3600.0 + 120.0 * stretch
        records = (share * work / (share * costs).sum())[read]
        equations.append(Equation("a", at, 120.0, limited=True, partitions=read, records=records))
    for number, name in enumerate("bc", start=1):
        mine = np.arange(count) + number * count
        bound = np.full(count, 120.0 * 60.0 / count)
        equations.append(Equation(name, NOW, 120.0, limited=False, partitions=mine, records=bound))
    rates = np.concatenate(
        (usual * speed / (usual * costs).sum(), np.full(2 * count, 60.0 / count))
    )
    ordered = np.argsort(costs, kind="stable")
    middle = np.searchsorted(rates[ordered].cumsum(), rates[:count].sum() / 2.0)
    found = Told()
    found.add(
        solve(equations, topic, rates),
        costs / costs[ordered][middle],
        np.ones(count, dtype=bool) if topics else shares.max(axis=0) >= 2.0 * shares.min(axis=0),
    )
    return found


def test_the_truth_is_in_nine_of_ten_intervals_and_most_are_told() -> None:
    """Of partitions and topics in shares that differ twofold, and of those read alone."""
    total = Told()
    for seed in range(MEMBERS):
        kind = seed % 3
        found = told_of(seed, (0.003, 0.01, 0.02)[seed % 5 % 3], topics=kind == 1, alone=kind == 2)
        total.must, total.found = total.must + found.must, total.found + found.found
        total.known, total.right = total.known + found.known, total.right + found.right
    assert total.right >= 0.9 * total.known
    assert total.found >= 0.9 * total.must


def test_intervals_hold_the_truth_where_the_usual_is_a_single_partition() -> None:
    """Where all records differ, how well the usual itself is known counts for each of them."""
    total = Told()
    for seed in range(MEMBERS):
        found = told_of(seed, 0.02, own=True)
        total.known, total.right = total.known + found.known, total.right + found.right
    assert total.known >= MEMBERS
    assert total.right >= 0.87 * total.known


def test_what_is_dear_among_partitions_in_constant_shares_is_not_known() -> None:
    """One partition moves away; whether what remains is usual nobody can know."""

    def read(name: str, at: float, places: np.ndarray, records: float) -> Equation:
        amounts = np.full(places.size, records)
        return Equation(name, at, 120.0, limited=name == "a", partitions=places, records=amounts)

    with_it = [read("a", NOW - 600.0 * n, np.arange(11), 100.0) for n in range(1, 5)]
    without = read("a", NOW, np.arange(10), 162.0)
    idle = read("b", NOW, np.arange(11, 21), 600.0)
    costs = solve([*with_it, without, idle], np.zeros(21, np.int64), np.ones(21))
    assert np.isnan(costs.known()).all()


@pytest.mark.parametrize("seed", range(4))
def test_what_is_read_at_an_even_rate_beside_uneven_ones_is_not_dear_for_that(seed: int) -> None:
    """If it took nearly all of the member's time, nothing else that it reads would matter."""
    rng = np.random.default_rng(seed)
    equations = []
    for number, member in enumerate("abc"):
        for stretch in range(40):
            records = 1050.0 * rng.uniform(0.97, 1.03, 5)
            if member == "c":
                records = 1050.0 * np.where(np.arange(5) > 0, rng.choice([0.5, 1.0, 1.7], 5), 1.0)
            at, read = NOW - 3600.0 + 60.0 * stretch, np.arange(5) + 5 * number
            equation = Equation(member, at, 60.0, limited=True, partitions=read, records=records)
            equations.append(equation)
    costs = solve(equations, np.zeros(15, np.int64), np.full(15, 20.0))
    assert costs.equal


def test_a_partition_that_slows_whoever_reads_it_is_dear_however_dear_it_is() -> None:
    """Six members had it in turn and did a third; three of them did three times as much before.

    Who takes the few stretches for wrong that tell most finds all members slow instead.
    """
    light, dear, equations = 12, 72, []

    def read(member: int, minute: float, seconds: float, *, with_it: bool) -> None:
        places, per_s = np.arange(light) + light * member, np.full(light, 100.0 / light)
        if with_it:
            places, per_s = np.append(places, dear), np.append(np.full(light, 40.0 / light), 2.0)
        at, records = NOW + 60.0 * minute, seconds * per_s
        equation = Equation(
            f"m{member}", at, seconds, limited=True, partitions=places, records=records
        )
        equations.append(equation)

    for member in range(6):
        for stretch in range(3):
            read(member, 15 * member + 5 + 5 * stretch, 300.0, with_it=True)
        if member % 2:
            read(member, 15 * member - 2, 60.0, with_it=False)
    rates = np.append(np.full(dear, 3.0), 2.2)
    costs = solve(equations, np.zeros(dear + 1, np.int64), rates)
    assert 20.0 < costs.value[dear] < 40.0
    assert (costs.value[:dear] == 1.0).all()


def test_short_work_is_not_joined_with_what_came_before() -> None:
    """Reports are of less than a second where little is read."""
    rng, each = np.random.default_rng(2), np.arange(8)
    short = Equation(
        "a", 0.0, 0.5, limited=True, partitions=each[:1], records=np.array([5.0]), blur_s=0.01
    )
    long = [
        Equation(
            *("a", 60.0 * number, 60.0),
            limited=True,
            partitions=each,
            records=rng.uniform(1.0, 5000.0, each.size),
        )
        for number in range(1, 11)
    ]
    found = solve([short, *long], np.zeros(each.size, np.int64), np.ones(each.size))
    assert np.isfinite(found.estimate).all()
