"""Input and output lines of `fairlead decide`, for valid and invalid content."""

import json
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assignors.assignment import Assignment
from assignors.problem import InvalidProblemError, Problem
from assignors.verifier import violations
from fairlead.common.json_lines import answer_lines
from fairlead.domain.decide_json.lines import answer_question
from tests.fairlead.domain.analysis.outside import written
from tests.fairlead.domain.analysis.questions import arriving, behind, prompt, question, skewed
from tests.lengths import form

HUGE = 2**63 - 1


@st.composite
def questions(draw: st.DrawFn) -> dict[str, Any]:
    """Return random well-formed input lines; most are unrealistic."""
    topics = {f"t{n}": draw(st.integers(1, 4)) for n in range(draw(st.integers(1, 3)))}
    members = [f"m{n}" for n in range(draw(st.integers(0, 4)))]
    seed = draw(st.integers(0, 2**32))
    rng = random.Random(seed)
    largest = draw(st.sampled_from([0, 5, 1000, 10**6, HUGE]))
    orderly = draw(st.booleans())
    names = [*members, "gone", None] if draw(st.booleans()) else [*members, None]
    rates = {topic: [rng.choice([0, 1, 60, 5000]) for _ in range(n)] for topic, n in topics.items()}
    owner = {topic: [rng.choice(names) for _ in range(n)] for topic, n in topics.items()}
    at, snapshots = 0.0, []
    for step in range(draw(st.integers(1, 14))):
        at += rng.choice([60.0, 60.0, 60.0, 900.0, 0.001])
        row: dict[str, Any] = {"at": written(at), "end": {}, "committed": {}, "owners": {}}
        for topic, count in topics.items():
            ends = [
                step * rates[topic][place] if orderly else rng.randint(0, largest)
                for place in range(count)
            ]
            row["end"][topic] = [end if rng.random() < 0.97 else None for end in ends]
            row["committed"][topic] = [
                int(end * rng.choice([0.5, 0.99, 1.0])) if rng.random() < 0.95 else None
                for end in ends
            ]
            if rng.random() < 0.5:
                stable = [rng.choice([end, end // 2, 0, None]) for end in ends]
                row.setdefault("stable_end", {})[topic] = stable
            row["owners"][topic] = [
                member if rng.random() < 0.97 else rng.choice(names) for member in owner[topic]
            ]
        snapshots.append(row)
    return {
        "policy": draw(
            st.sampled_from(
                [{}, {"objective": 2}, {"horizon": "PT5M"}, {"max_moves": 1}, {"move_downtime": 0}]
            )
        ),
        "topics": topics,
        "members": {
            name: {"topics": rng.sample(list(topics), rng.randint(0, len(topics)))}
            for name in members
        },
        "snapshots": snapshots,
        "capacities": {
            name: {
                "records_per_s": rng.choice([0, 0.5, 80.0, 10**6]),
                "measured": rng.random() < 0.5,
                "at": written(at - rng.choice([-100.0, 0.0, 60.0, 1e5, 1e9])),
            }
            for name in members
            if rng.random() < 0.5
        },
        "changed_at": rng.choice([None, written(at), written(at - 60), written(at - 1e6)]),
    }


def sane(answer: dict[str, Any], line: dict[str, Any]) -> None:
    """Check the properties that every answer must have."""
    json.dumps(answer, allow_nan=False)
    problem = Problem.of(line["topics"], {k: v["topics"] for k, v in line["members"].items()})
    if answer["outcome"] == "plan":
        owner = np.full(problem.partition_total, -1, np.int32)
        for name, topics in answer["assignment"].items():
            for topic, partitions in topics.items():
                first = int(problem.topic_offsets[problem.topics.index(topic)])
                owner[[first + partition for partition in partitions]] = problem.members.index(name)
        assert violations(problem, Assignment(problem, owner)) == []
    else:
        assert "assignment" not in answer
        assert "planned" not in answer["forecast"]
        assert answer["moved"] == 0


@settings(max_examples=form(short=75, long=1000), deadline=None)
@given(questions())
def test_any_question_has_a_sane_answer(line: dict[str, Any]) -> None:
    """Figures are finite, plans are valid, and the order of keys in the line does not matter."""
    answer = answer_question(line)
    sane(answer, line)
    turned = {
        key: dict(reversed(value.items())) if isinstance(value, dict) else value
        for key, value in reversed(line.items())
    }
    for snapshot in turned["snapshots"]:
        for key in ("end", "committed", "owners"):
            snapshot[key] = dict(reversed(snapshot[key].items()))
    assert json.dumps(answer_question(turned)) == json.dumps(answer)


@settings(max_examples=form(short=50, long=1000), deadline=None)
@given(questions())
def test_no_change_while_the_forecast_is_within_the_objective(line: dict[str, Any]) -> None:
    """If the forecast is within the objective, a plan only assigns partitions without an owner."""
    answer = answer_question(line)
    if answer["outcome"] == "plan" and answer["forecast"]["kept"]["time_lag_s"] <= line[
        "policy"
    ].get("objective", 60):
        assert "without an owner" in answer["reason"]
        assert answer["moved"] == 0


@settings(max_examples=form(short=50, long=1000), deadline=None)
@given(questions())
def test_capacities_of_an_answer_go_into_the_next_question(line: dict[str, Any]) -> None:
    """If a line is sent again with the capacities from its answer, the outcome stays the same."""
    first = answer_question(line)
    again = answer_question({**line, "capacities": first["capacities"]})
    assert again["capacities"] == {
        name: {**known, "records_per_s": pytest.approx(known["records_per_s"], rel=1e-9)}
        for name, known in first["capacities"].items()
    }
    assert again["outcome"] == first["outcome"]


def changed(path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    """Return an input line in which one value is replaced."""
    line: Any = question(6)
    inner = line
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    whole: dict[str, Any] = line
    return whole


SPEED = {"records_per_s": 1.0, "measured": True, "at": written(0.0)}


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("snapshots",), [], "snapshots: "),
        (("snapshots", 3, "at"), written(0.0), r"snapshots\[3\].at: .* order snapshots by time"),
        (("snapshots", 3, "at"), "2026-03-02T00:00:00", "has no time zone"),
        (("snapshots", 3, "at"), 7, "is not a time"),
        (("snapshots", 3, "at"), written(0.0) + "\0", "is not a time"),
        (("topics", "t"), 1_000_001, "topics: 1000001 partitions are more than the 1000000"),
        (("snapshots", 5, "end", "t"), [0] * 9, r"end.t: 9 values for 8 partitions"),
        (("snapshots", 5, "end", "t", 0), -1, r"end.t\[0\]: -1 is not an offset"),
        (("snapshots", 5, "end", "t", 0), True, "true is not an offset"),
        (("snapshots", 5, "end", "t", 0), HUGE + 1, "is not an offset"),
        (("snapshots", 5, "stable_end", "t", 0), "9", r"stable_end.t\[0\]: \"9\" is not an offset"),
        (("snapshots", 5, "owners", "t", 0), 3, "3 is not a member"),
        (("members", "a"), {"topic": ["t"]}, "members.a.topic: no such field"),
        (("members",), [], "members: "),
        (("policy",), {"objektive": 1}, "policy.objektive"),
        (("policy",), {"objective": -1}, "policy.objective"),
        (("capacities",), {"a": {**SPEED, "records_per_s": 10**400}}, "is not a rate"),
        (("capacities",), {"a": {**SPEED, "records_per_s": 1e308}}, "is not a rate"),
        (("capacities",), {"a": {**SPEED, "records_per_s": -1}}, "is not a rate"),
        (("capacities",), {"a": {**SPEED, "measured": 1}}, "is not true or false"),
        (("capacities",), {"a": {"records_per_s": 1}}, "is missing"),
        (("changed_at",), "yesterday", "changed_at: "),
        (("extra",), 1, "extra: no such field"),
    ],
)
def test_an_invalid_question_is_an_error_that_names_the_field(
    path: tuple[Any, ...], value: Any, message: str
) -> None:
    with pytest.raises(InvalidProblemError, match=message):
        answer_question(changed(path, value))


def test_capacities_dated_in_the_future_are_replaced() -> None:
    for at in ("2027-01-01T00:00:00+00:00", "9999-12-31T23:59:59-23:59"):
        slow = {"records_per_s": 1.0, "measured": True, "at": at}
        answer = answer_question(question(capacities={"a": slow}))
        assert answer["capacities"]["a"]["records_per_s"] > 3
        assert answer["diagnosis"] == "healthy"


@pytest.mark.parametrize("without", ["begin", "committed", "owners"])
def test_optional_values_may_be_absent(without: str) -> None:
    line = question()
    for snapshot in line["snapshots"]:
        del snapshot[without]
    expected = "healthy" if without == "begin" else "unknown"
    assert answer_question(line)["diagnosis"] == expected


@pytest.mark.parametrize("topics", [{}, {"t": 0}, {"u": 3}])
def test_topics_that_are_gone_leave_nothing_to_plan(topics: dict[str, int]) -> None:
    line = question(topics=topics)
    line["snapshots"][-1] = {"at": line["snapshots"][-1]["at"], "end": {}}
    answer = answer_question(line)
    assert (answer["outcome"], answer["diagnosis"]) == ("no change", "unknown")


@pytest.mark.parametrize("ends", [[None] * 8, [0] * 8])
def test_logs_created_again_are_unknown(ends: list[int | None]) -> None:
    """If a topic was recreated just before the last sample, the group is unknown, not healthy."""
    line = question()
    line["snapshots"][-1]["end"]["t"] = ends
    assert answer_question(line)["diagnosis"] == "unknown"


def test_offsets_near_the_largest_do_not_overflow() -> None:
    steps: list[Callable[[int, int], int]] = [
        lambda _, step: HUGE - 10**15 * (20 - step),
        lambda _, __: HUGE,
    ]
    for end in steps:
        line = question(end=end, committed=lambda _, step: step * 10**14)
        sane(answer_question(line), line)


def test_tiny_target_utilisation_does_not_overflow() -> None:
    """A target utilisation of 5e-324 gets an answer, although its advice makes no sense."""

    def hot(partition: int, step: int) -> int:
        return skewed(partition, step) if partition == 0 else arriving(partition, step)

    def read(partition: int, step: int) -> int:
        return behind(partition, step) if partition == 0 else prompt(partition, step)

    line = question(end=hot, committed=read, policy={"target_utilisation": 5e-324})
    assert answer_question(line)["diagnosis"] == "hot partition"


def test_thousands_of_samples_are_answered() -> None:
    line = question(3000)
    assert answer_question(line)["diagnosis"] == "healthy"


def test_invalid_lines_do_not_affect_valid_ones() -> None:
    good = json.dumps(question(end=skewed, committed=behind)).encode()
    answers = list(answer_lines([b"{", good, b'{"topics": {}}', good], answer_question))
    assert ["error" in answer for answer in answers] == [True, False, True, False]
    assert answers[1] == answers[3]
