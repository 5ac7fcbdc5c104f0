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


def test_who_reads_other_topics_is_no_peer() -> None:
    """Three read heavy records, 50/s; three others read light ones, 5,000/s, and had a backlog."""
    heavy, light = {f"a{n}": ("heavy",) for n in range(3)}, {f"b{n}": ("light",) for n in range(3)}
    rates = np.concatenate((np.full(8, 15.0), np.full(6, 1500.0)))
    backlog = np.concatenate((np.zeros(8), np.full(6, 1_500_000.0)))
    group = Group(
        steady(rates),
        steady(np.array([50.0] * 3 + [5_000.0] * 3)),
        topics={"heavy": 8, "light": 6},
        reads={**heavy, **light},
        backlog=backlog,
        owner=np.array([0, 0, 0, 0, 1, 1, 1, 2, 3, 3, 4, 4, 5, 5]),
    )
    loop = Loop(group, decide_s=1e9)
    loop.run(1.0)
    answer = answer_question(loop.question())
    assert answer["outcome"] == "plan"
    assert answer["diagnosis"] == "badly spread"
    assert all(len(answer["assignment"][name]["heavy"]) <= 3 for name in heavy)


@pytest.mark.parametrize(
    ("rates", "diagnosis", "words"),
    [
        ([60.0, 20.0], "hot partition", "the fastest member can drain 50/s"),
        ([30.0] * 4, "overloaded", "the 2 members that read them can do 100/s"),
    ],
)
def test_who_reads_other_topics_has_no_room_for_this(
    rates: list[float], diagnosis: str, words: str
) -> None:
    """Two members of 50/s get too much; two of 500/s with room read another topic."""
    count = len(rates)
    group = Group(
        steady(np.array([*rates, *[20.0] * 4])),
        steady(np.array([50.0, 50.0, 500.0, 500.0])),
        topics={"a": count, "b": 4},
        reads={"a1": ("a",), "a2": ("a",), "b1": ("b",), "b2": ("b",)},
    )
    loop = Loop(group, decide_s=1e9)
    loop.run(1.0)
    answer = answer_question(loop.question())
    assert answer["diagnosis"] == diagnosis
    assert words in answer["evidence"]


def test_missing_consumers_have_room_for_whole_partitions() -> None:
    """Two of 40/s fit into a member of 99/s, so that nine of them need five members."""
    group = Group(
        steady(np.full(9, 40.0)), steady(np.full(3, 99.0)), topics={"t": 9}, reads=names(3)
    )
    loop = Loop(group, decide_s=1e9)
    loop.run(1.0)
    answer = answer_question(loop.question())
    assert answer["diagnosis"] == "overloaded"
    assert "2 more consumers of 99/s would" in answer["evidence"]


def test_a_group_that_is_full_to_the_brim_is_told_what_is_planned_with() -> None:
    """What members can do is more than what arrives, and hardly more."""
    speeds, rates = np.array([249.0, 249.0, 249.0, 107.0]), np.full(34, 25.0)
    owner = np.array([0] * 10 + [1] * 9 + [2] * 9 + [3] * 6)
    group = Group(steady(rates), steady(speeds), topics={"t": 34}, reads=names(4), owner=owner)
    loop = Loop(group, decide_s=1e9)
    loop.run(1.0)
    answer = answer_question(loop.question())
    assert answer["diagnosis"] == "overloaded"
    assert (
        "850/s arrive and the 4 members can do 854/s, of which 95% is planned" in answer["evidence"]
    )
    assert "1 more consumer of 249/s would" in answer["evidence"]


def test_one_silent_member_keeps_its_partitions_and_holds_nobody_up() -> None:
    """The last of ten hangs at a record; the first gets 144/s of 100."""
    owner = np.array([0] * 8 + [member for member in range(1, 9) for _ in range(2)] + [9])
    rates = np.array([18.0] * 24 + [5.0])
    speeds = np.array([100.0] * 9 + [0.0])
    reads = {f"m{number}": ("t",) for number in range(10)}
    group = Group(steady(rates), steady(speeds), topics={"t": 25}, reads=reads, owner=owner)
    loop = Loop(group, decide_s=1e9)
    loop.run(1.0)
    answer = answer_question(loop.question())
    assert (answer["outcome"], answer["diagnosis"]) == ("plan", "badly spread")
    assert "m9 has committed nothing" in answer["evidence"]
    assert answer["assignment"]["m9"] == {"t": [24]}
    assert len(answer["assignment"]["m0"]["t"]) <= 5


def test_a_group_of_which_somebody_is_always_replaced_is_planned() -> None:
    """One member in sixty, every other look, gives its partitions to a new one."""
    members, step_s = 60, 120.0
    spare = 40

    def present(now: float) -> np.ndarray[Any, np.dtype[np.bool_]]:
        gone = int(now // step_s) % spare
        there = np.ones(members + spare, dtype=bool)
        there[10 : 10 + gone] = False
        there[members + gone :] = False
        return there

    rates = np.where(np.arange(2 * members) < 8, 80.0, 20.0)
    group = Group(
        steady(rates),
        steady(np.full(members + spare, 100.0)),
        topics={"t": 2 * members},
        reads={f"m{number:03d}": ("t",) for number in range(members + spare)},
        present=present,
        owner=np.repeat(np.arange(members), 2),
    )
    loop = Loop(group, decide_s=1e9)
    loop.run(1.0)
    answer = answer_question(loop.question())
    assert answer["outcome"] == "plan"
    assert answer["diagnosis"] == "badly spread"


def test_a_look_without_owners_says_nothing_of_who_came_or_went() -> None:
    """The coordinator did not answer at one look two minutes ago."""
    line = question(end=skewed, committed=behind)
    whole = answer_question(line)
    line["snapshots"][-3]["owners"]["t"] = [None] * 8
    answer = answer_question(line)
    assert (answer["outcome"], answer["moved"]) == (whole["outcome"], whole["moved"])
