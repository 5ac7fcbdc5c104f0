"""Decisions: whether a group gets a plan, and which plan."""

import json
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from fairlead.domain.decide_json.lines import answer_question
from tests.cost import costs_at_most
from tests.fairlead.domain.analysis.outside import (
    START,
    Group,
    Loop,
    answer_after,
    steady,
    written,
    zipf,
)
from tests.fairlead.domain.analysis.questions import (
    arriving,
    behind,
    halves,
    prompt,
    question,
    skewed,
)

SPEEDS = steady(np.full(10, 100.0))
Offset = Callable[[int, int], int]


def gapped(partition: int, step: int) -> str | None:
    """Return a partition's owner: none for partition 7, `b` for partition 6, otherwise `a`."""
    return None if partition == 7 else "a" if partition < 6 else halves(partition, step)


def test_an_orphan_gets_an_owner_and_nothing_else_moves() -> None:
    answer = answer_question(question(2, owner=gapped, committed=lambda *_: 0))
    assert (answer["outcome"], answer["moved"]) == ("plan", 0)
    assert answer["assignment"]["a"]["t"][:6] == [0, 1, 2, 3, 4, 5]


def test_a_group_without_known_owners_gets_no_plan() -> None:
    answer = answer_question(question(owner=lambda *_: None))
    assert (answer["outcome"], answer["diagnosis"]) == ("no change", "unknown")


def test_the_effect_of_a_plan_is_awaited() -> None:
    sick = question(end=skewed, committed=behind)
    assert answer_question(sick)["diagnosis"] != "healthy"
    answer = answer_question({**sick, "changed_at": written(16 * 60.0)})
    assert answer["outcome"] == "no change"
    assert "took effect" in answer["reason"]


def test_many_plans_cause_a_back_off() -> None:
    """After twenty plans in quick succession, a group gets no plan for a while."""
    sick, memory = question(end=skewed, committed=behind), None
    outcomes = []
    for number in range(21):
        line = {**sick, "memory": memory, "changed_at": written((number - 21) * 300.0)}
        answer = answer_question(line)
        outcomes.append(answer["outcome"])
        memory = json.loads(json.dumps(answer["memory"]))
    assert outcomes == ["plan"] * 19 + ["no change"] * 2
    assert answer["reason"].startswith("21 plans took effect within ")
    assert "back-off for " in answer["reason"]
    later = {**sick, "memory": memory, "changed_at": written(-86_400.0)}
    assert answer_question(later)["outcome"] == "plan"


@pytest.mark.parametrize(("days", "outcome"), [(1, "no change"), (3, "plan")])
def test_plans_of_the_last_two_days_cause_a_back_off(days: int, outcome: str) -> None:
    sick = question(end=skewed, committed=behind)
    memory = answer_question(sick)["memory"]
    memory["plans"] = [START - 86_400.0 * days + 60.0 * number for number in range(23)]
    answer = answer_question({**sick, "memory": memory, "changed_at": written(60.0 * 9)})
    assert answer["outcome"] == outcome


def changed(at: int, before: Offset, after: Offset) -> Offset:
    """Return offsets that advance as `before` up to step `at`, then as `after`."""

    def offset(partition: int, step: int) -> int:
        if step <= at:
            return before(partition, step)
        return before(partition, at) + after(partition, step - at) - after(partition, 0)

    return offset


def after_many_plans(sick: dict[str, Any], planned_at: int) -> dict[str, Any]:
    """Return the answer for a group that got 23 plans, and then another at step `planned_at`."""
    memory = answer_question(sick)["memory"]
    memory["plans"] = [START - 60.0 * number for number in range(23)]
    return answer_question({**sick, "memory": memory, "changed_at": written(60.0 * planned_at + 1)})


def test_no_back_off_if_arrivals_have_risen_since_the_last_plan() -> None:
    sick = question(35, end=changed(20, arriving, skewed), committed=changed(20, prompt, behind))
    answer = after_many_plans(sick, planned_at=9)
    assert answer["outcome"] == "plan", answer["reason"]


@pytest.mark.parametrize("steps", [25, 26, 32, 36, 44])
def test_back_off_if_arrivals_rose_before_the_last_plan(steps: int) -> None:
    """Arrivals rose at step 12, before the plan of step 15, so the back-off still applies."""
    end, committed = changed(12, arriving, skewed), changed(12, prompt, behind)
    answer = after_many_plans(question(16 + steps, end=end, committed=committed), planned_at=15)
    assert "back-off for " in answer["reason"]


@pytest.mark.parametrize("steps", [12, 18, 22])
def test_back_off_if_arrivals_have_fallen_since_the_last_plan(steps: int) -> None:
    def much(partition: int, step: int) -> int:
        return 1000 + 60 * step * (60 if partition < 4 else 1)

    def read(partition: int, step: int) -> int:
        return 1000 + (1800 * step if partition < 4 else 60 * step - 3 * (step > 0))

    at = 10 + steps // 2
    sick = question(11 + steps, end=changed(at, much, skewed), committed=changed(at, read, behind))
    assert "back-off for " in after_many_plans(sick, planned_at=10)["reason"]


@pytest.mark.parametrize("unread", [(20, 21), (25, 26, 27)])
def test_back_off_if_a_partition_was_unreadable_since_the_last_plan(unread: Sequence[int]) -> None:
    def end(partition: int, step: int) -> int | None:
        return None if partition == 0 and step in unread else skewed(partition, step)

    answer = after_many_plans(question(34, end=end, committed=behind), planned_at=9)
    assert "back-off for " in answer["reason"]


@pytest.mark.parametrize("hours", [1.0, 4.0])
def test_a_group_that_was_behind_for_hours_is_cured(hours: float) -> None:
    """A plan of few moves stops the growth of an old backlog."""
    rates = np.sort(zipf(100, 0.6, 0.85, 1000.0))[::-1]
    answer = answer_after(Group(steady(rates), SPEEDS), hours)
    assert answer["outcome"] == "plan"
    assert answer["moved"] <= 20
    assert answer["forecast"]["planned"]["utilisation"] < 1


@pytest.mark.long
def test_an_even_catch_up_is_left_alone() -> None:
    """If all members are at their limit with equal backlogs, no plan is made."""
    group = Group(steady(np.full(100, 6.0)), SPEEDS, backlog=np.full(100, 20_000.0))
    course = Loop(group, decide_s=300, since_h=0.0).run(1.5)
    assert course.plans == []
    assert {name for name, _ in course.diagnoses} <= {"recovering", "unknown", "healthy"}


def test_a_full_decision_costs_no_more_than_a_few_million_additions() -> None:
    """Planning 100 partitions from an hour of samples takes less CPU than 3 million additions."""
    rates = np.sort(zipf(100, 0.6, 0.85, 1000.0))[::-1]
    loop = Loop(Group(steady(rates), SPEEDS), decide_s=1e9)
    loop.run(1.0)
    line = loop.question()
    assert answer_question(line)["outcome"] == "plan"

    def add() -> None:
        total = 0
        for number in range(1_000_000):
            total += number

    costs_at_most(3, lambda: answer_question(line), add)
