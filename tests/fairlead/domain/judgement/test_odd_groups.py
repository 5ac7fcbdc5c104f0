"""Groups that are not equal members with equal records, fully read at every look.

Belongs here: what a judgement makes of each such oddity, through `fairlead decide` lines. Does not:
how the odd figures are read (`test_commits`, `test_capacities`).
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from fairlead.domain.judgement.lines import answer_question
from tests.fairlead.domain.judgement.outside import Group, Loop, steady, written
from tests.fairlead.domain.judgement.questions import behind, halves, question, skewed


def names(count: int) -> Mapping[str, tuple[str, ...]]:
    """Return so many members of the topic t."""
    return {f"m{number}": ("t",) for number in range(count)}


def catching_up() -> dict[str, Any]:
    """Return a line about three equal members, an hour into reading a backlog."""
    group = Group(
        steady(np.full(9, 80.0 / 3)),
        steady(np.full(3, 100.0)),
        topics={"t": 9},
        reads=names(3),
        backlog=np.full(9, 80_000.0),
    )
    loop = Loop(group, decide_s=1e9)
    loop.run(1.0)
    return loop.question()


@pytest.mark.parametrize("ago", [1, 2, 3, 4, 7])
def test_a_partition_that_a_look_did_not_see_makes_nobody_slow(ago: int) -> None:
    """Whether the last look or one of those before it missed two partitions of a member."""
    line = catching_up()
    whole = answer_question(line)
    assert whole["diagnosis"] == "recovering"
    for partition in (0, 1):
        line["snapshots"][-ago]["end"]["t"][partition] = None
    answer = answer_question(line)
    assert (answer["outcome"], answer["diagnosis"]) == ("no change", "recovering")
    speed = answer["capacities"]["m0"]["records_per_s"]
    assert speed == pytest.approx(whole["capacities"]["m0"]["records_per_s"], rel=0.05)


@pytest.mark.parametrize("members", [2, 3])
def test_an_ill_machine_among_idle_ones_is_relieved(members: int) -> None:
    """It does 15 of 40/s; its peers are at 40 % of what they can, and were never at their limit."""
    speeds = np.full(members, 100.0)
    speeds[0] = 15.0
    topics = {"t": 2 * members}
    rates = steady(np.full(2 * members, 20.0))
    group = Group(rates, steady(speeds), topics=topics, reads=names(members))
    loop = Loop(group, decide_s=900.0, since_h=2.0)
    course = loop.run(3.0)
    assert course.plans
    assert course.late == 0


def test_of_two_budgets_of_moves_the_smaller_counts() -> None:
    """Whether the policy's own or its assignor's option is the smaller."""
    for rules, option in ((1, 3), (3, 1)):
        policy = {"max_moves": rules, "options": {"sticky-lag-aware": {"max_moves": option}}}
        answer = answer_question(question(end=skewed, committed=behind, policy=policy))
        assert (answer["outcome"], answer["moved"]) == ("plan", 1)


def test_a_budget_of_moves_lifts_no_cooldown() -> None:
    """A partition without an owner gets one meanwhile; all else stays."""
    policy = {"cooldown": "PT2H", "options": {"sticky-lag-aware": {"max_moves": 3}}}

    def nobodys(partition: int, look: int) -> str | None:
        return None if partition == 7 else halves(partition, look)

    answer = answer_question(
        question(
            end=skewed,
            committed=behind,
            owner=nobodys,
            policy=policy,
            changed_at=written(-900.0),
        )
    )
    assert (answer["outcome"], answer["moved"]) == ("plan", 0)
