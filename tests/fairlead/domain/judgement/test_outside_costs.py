"""Groups with dear records, in another simulator than the product's own."""

import numpy as np
import pytest

from tests.fairlead.domain.judgement.outside import Group, steady
from tests.fairlead.domain.judgement.outside_costs import CostlyLoop, Sharing

MEMBERS, EACH, SPEED = 8, 11, 100.0


def loop(costs: np.ndarray, used: float, sharing: Sharing, since_h: float) -> CostlyLoop:
    """Return a group of eight members that is used so much; who is late counts from then on."""
    rates = np.exp(0.2 * np.random.default_rng(5).standard_normal(costs.size))
    rates *= used * MEMBERS * SPEED / float(rates @ costs)
    group = Group(
        steady(rates),
        steady(np.full(MEMBERS, SPEED)),
        topics={"t": costs.size},
        reads={f"m{member}": ("t",) for member in range(MEMBERS)},
    )
    return CostlyLoop(group, steady(costs), sharing, since_h=since_h)


@pytest.mark.parametrize("sharing", ["in proportion", "in turns", "in chunks"])
def test_dear_partitions_are_spread_until_nobody_is_late(sharing: Sharing) -> None:
    """A tenth of the partitions takes eight times as long: some members have three of them."""
    costs = np.ones(MEMBERS * EACH)
    costs[[2, 5, 8, 24, 27, 30, 50, 70]] = 8.0
    course = loop(costs, 0.82, sharing, since_h=3.0).run(6.0)
    assert course.late == 0
    assert 1 <= len(course.plans) <= 6
    assert {name for name, _ in course.said} == {"healthy"}


@pytest.mark.parametrize("sharing", ["in proportion", "in turns", "in chunks"])
def test_whatever_makes_each_of_its_readers_slow_is_dear(sharing: Sharing) -> None:
    """Three take thirty times as long, one of them more than a member does: it alone is late."""
    costs = np.ones(MEMBERS * EACH)
    costs[[20, 52, 80]] = 30.0
    run = loop(costs, 0.75, sharing, since_h=8.0)
    work = run.group.rates(0.0) * costs / SPEED
    assert (work > 1.0).nonzero()[0].tolist() == [52]
    course = run.run(10.0)
    assert course.late <= 2 * 60
    assert {name for name, _ in course.said} == {"hot partition"}
    assert len(course.plans) <= 10


@pytest.mark.parametrize("seed", [1, 5])
def test_who_commits_long_before_each_look_is_not_at_its_limit(seed: int) -> None:
    """Two of six commit 28 s before each look, and four 2 s: who can do half is relieved by all."""
    rng = np.random.default_rng(seed)
    speeds = np.full(6, SPEED)
    speeds[2] /= 2
    costs = np.ones(6 * EACH)
    costs[rng.choice(costs.size, 7, replace=False)] = 4.0
    rates = np.exp(0.2 * rng.standard_normal(costs.size))
    rates *= 0.7 * speeds.sum() / float(rates @ costs)
    reads = {f"m{member}": ("t",) for member in range(6)}
    group = Group(steady(rates), steady(speeds), {"t": costs.size}, reads, commit_s=30.0)
    run = CostlyLoop(group, steady(costs), "in chunks", since_h=3.0)
    run.phase[:] = np.where(np.isin(np.arange(6), [3, 5]), 2.0, 28.0)
    course = run.run(5.0)
    assert (course.late, len(course.plans) <= 2) == (0, True)


@pytest.mark.parametrize(
    ("seed", "sharing", "count"),
    [
        (4, "in turns", 500),
        (1, "in turns", 1500),
        (3, "in proportion", 1500),
        (4, "in chunks", 1500),
    ],
)
def test_records_that_are_committed_many_at_once_tell_costs_and_speeds(
    seed: int, sharing: Sharing, count: int
) -> None:
    """Each partition is committed after 1,500 records, which takes a quarter of an hour; or 500."""
    rng = np.random.default_rng(seed)
    speeds = 50.0 * rng.uniform(0.9, 1.1, 7)
    costs = np.ones(70)
    costs[rng.choice(costs.size, 6, replace=False)] = 8.0
    rates = np.exp(0.2 * rng.standard_normal(costs.size))
    rates *= 0.7 * speeds.sum() / float(rates @ costs)
    reads = {f"m{member}": ("t",) for member in range(7)}
    group = Group(steady(rates), steady(speeds), {"t": costs.size}, reads, by_count=count)
    course = CostlyLoop(group, steady(costs), sharing, seed=seed, since_h=3.0).run(8.0)
    assert (course.late, len(course.plans) <= 5) == (0, True)
