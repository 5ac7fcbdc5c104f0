"""Random groups with known causes, and the marks of their diagnoses."""

import numpy as np
import pytest

from benchmarks.random_scenarios import (
    CAUSES,
    REAL_CAUSES,
    Labelled,
    random_scenario,
)
from benchmarks.scoring import mark, share_right
from benchmarks.simulation.world import ScenarioWorld
from tests.lengths import form


@pytest.mark.parametrize("number", range(len(CAUSES)))
def test_plain_groups_are_calm_until_something_happens(number: int) -> None:
    """Under range no member is near its limit before the cause; then the named members are."""
    is_calm_until_something_happens(random_scenario(number))


@pytest.mark.parametrize("number", range(len(REAL_CAUSES)))
def test_real_groups_are_calm_until_something_happens(number: int) -> None:
    """The same by work: for any costs, subscriptions and replaced members."""
    is_calm_until_something_happens(random_scenario(number, real=True))


def is_calm_until_something_happens(labelled: Labelled) -> None:
    world = ScenarioWorld.of(labelled.scenario, hours=3)
    members = int(world.present[0].sum())
    work = world.rates * world.costs
    used = work.reshape(world.steps, members, -1).sum(axis=2) / world.speeds[:, :members]
    since = int(np.ceil(labelled.since_s / world.step_s))
    assert used[:since].max() <= 0.85
    full = {labelled.scenario.members[m] for m in np.flatnonzero(used[since] > 1)}
    if labelled.cause in {"unbalanced", "slow member"}:
        assert full == labelled.names
        assert work[since].sum() < 0.86 * world.speeds[since].sum()
    if labelled.cause in {"healthy", "stuck partition", "throttled partition", "unknown"}:
        assert not full
    if labelled.cause == "throttled partition":
        crawls = np.isfinite(world.limits[since])
        assert crawls.sum() == 1
        assert world.limits[since, crawls] < 0.7 * world.rates[since, crawls]
    if labelled.cause == "overloaded":
        assert work[since].sum() > 1.15 * world.speeds[since, :members].sum()


@pytest.mark.long
@pytest.mark.parametrize("plans", form(short=[True], long=[False, True]))
def test_diagnoses_of_random_groups_are_right(*, plans: bool) -> None:
    """Of a group of each cause, nearly every diagnosis is right, with its name."""
    numbers = range(len(CAUSES))
    marks = [
        verdict for number in numbers for verdict in mark(random_scenario(number), plans=plans)
    ]
    assert {mark_of.cause for mark_of in marks} == set(CAUSES)
    assert share_right(marks)["all"] >= 0.9


def test_a_wrong_answer_is_marked_wrong() -> None:
    """The diagnosis of one group is wrong for another."""
    hot = next(random_scenario(n) for n in range(7) if CAUSES[n % 7] == "hot partition")
    said = mark(hot, plans=False)
    assert {verdict.said for verdict in said} == {f"hot partition {next(iter(hot.names))}"}
    assert share_right(said) == {"all": 1.0, "hot partition": 1.0}
