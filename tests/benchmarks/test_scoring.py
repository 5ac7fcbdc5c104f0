"""Random groups of which the truth is known, and marking what is said of them."""

import numpy as np
import pytest

from benchmarks.random_scenarios import CAUSES, HOURS, random_scenario
from benchmarks.scoring import mark, share_right
from fairlead.simulation.world import World


@pytest.mark.parametrize("number", range(len(CAUSES) * 2))
def test_groups_are_calm_until_something_happens(number: int) -> None:
    """Under range nobody is nearly full before the cause; afterwards, whoever is named is too full.

    Stuck partitions and silent members change nothing in what arrives.
    """
    labelled = random_scenario(number)
    world = World.of(labelled.scenario, hours=HOURS)
    members = len(labelled.scenario.members)
    used = world.rates.reshape(world.steps, members, -1).sum(axis=2) / world.speeds
    since = int(np.ceil(labelled.since_s / world.step_s))
    assert used[:since].max() <= 0.85
    full = {labelled.scenario.members[m] for m in np.flatnonzero(used[since] > 1)}
    if labelled.cause in {"badly spread", "slow member"}:
        assert full == labelled.names
        assert world.rates[since].sum() < 0.86 * world.speeds[since].sum()
    if labelled.cause in {"healthy", "stuck partition", "unknown"}:
        assert not full
    if labelled.cause == "overloaded":
        assert world.rates[since].sum() > 1.15 * world.speeds[since].sum()


def test_equal_numbers_give_equal_groups() -> None:
    """A group can be drawn again."""
    assert random_scenario(3) == random_scenario(3)
    assert random_scenario(3) != random_scenario(10)


@pytest.mark.parametrize("plans", [False, True])
def test_the_planner_says_what_is_the_matter(*, plans: bool) -> None:
    """Of a group of each cause, nearly every diagnosis is right, with its name."""
    numbers = range(len(CAUSES))
    marks = [one for number in numbers for one in mark(random_scenario(number), plans=plans)]
    assert {one.cause for one in marks} == set(CAUSES)
    assert share_right(marks)["all"] >= 0.9


def test_a_wrong_answer_is_marked_wrong() -> None:
    """What is said of one group is wrong of another."""
    hot = next(random_scenario(n) for n in range(7) if CAUSES[n % 7] == "hot partition")
    said = mark(hot, plans=False)
    assert {one.said for one in said} == {f"hot partition {next(iter(hot.names))}"}
    assert share_right(said) == {"all": 1.0, "hot partition": 1.0}
