"""The memory that `fairlead decide` returns, and gets again in the next line: size and checks."""

import copy
import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from assignors.problem import Problem
from fairlead.common.json_lines import answer_lines
from fairlead.domain.analysis.capacities import Capacity
from fairlead.domain.decide_json.lines import answer_question
from fairlead.domain.decide_json.memory import recalled, written
from tests.fairlead.domain.analysis.questions import behind, question, series_at, skewed
from tests.lengths import form

LATE = question(end=skewed, committed=behind)
WITHOUT = answer_question(LATE)
SAME = ("outcome", "diagnosis", "names", "forecast", "costs", "capacities", "consumers")
NONSENSE = " The memory of earlier analyses is invalid and is ignored."
NASTY: tuple[Any, ...] = (
    None, True, -1, 0, 1.5, 10**400, -(10**30), "", "x" * 10_000, "\ud800", [], {}, [[]], {"": {}},
    "9999-12-31T23:59:59-23:59", "0001-01-01T00:00:00+23:59",
    '{"equations": [[1, 1e400, 1, 1, 1]]}', '{"equations": [[1, 2, true, 1' + "0" * 400 + ", {}]]}",
)  # fmt: skip


def spoilt(memory: Any, rng: np.random.Generator) -> Any:
    """Return the memory with one random value replaced by an invalid one."""
    spoilt_one = copy.deepcopy(memory)
    above, key = spoilt_one, "members"
    while rng.random() < 0.9 and isinstance(above[key], dict) and above[key]:
        above = above[key]
        key = list(above)[int(rng.integers(len(above)))]
    above[key] = NASTY[int(rng.integers(len(NASTY)))]
    return spoilt_one


def test_no_memory_makes_an_answer_fail() -> None:
    refused = 0
    for seed in range(form(short=50, long=5000)):
        memory = spoilt(WITHOUT["memory"], np.random.default_rng(seed))
        answer = answer_question(LATE | {"memory": memory})
        if answer["evidence"].endswith(NONSENSE):
            refused += 1
            assert [answer[key] for key in SAME] == [WITHOUT[key] for key in SAME], memory
    assert refused > 15


@pytest.mark.parametrize(
    "text",
    ["[" * 200_000 + "]" * 200_000, "NaN", '{"a": Infinity}', "9" * 5000, '{"a": 1, "a": 2}'],
)
def test_a_memory_that_is_not_json_does_not_affect_the_answer(text: str) -> None:
    line = json.dumps(LATE)[:-1] + ', "memory": ' + text + "}"
    (answer,) = answer_lines([line.encode()], answer_question, spare="memory")
    assert answer["evidence"] == WITHOUT["evidence"] + NONSENSE
    (error,) = answer_lines([line.encode()], answer_question)
    assert "error" in error


@pytest.mark.parametrize("line", [b'{"memory": ', b'{"memory": 1, "topics": {', b'{"memory": [}}'])
def test_a_line_that_is_not_json_is_an_error(line: bytes) -> None:
    (answer,) = answer_lines([line], answer_question, spare="memory")
    assert "error" in answer


def test_the_memory_of_another_group_is_ignored() -> None:
    other = question(end=lambda p, step: skewed(p, step) + 7, committed=behind)
    strangers = json.loads(
        json.dumps(WITHOUT["memory"]).replace('"a"', '"z"').replace('"b"', '"y"')
    )
    for memory in (answer_question(other)["memory"], strangers):
        answer = answer_question(LATE | {"memory": memory})
        assert answer["evidence"] == WITHOUT["evidence"] + NONSENSE
    again = answer_question(LATE | {"memory": WITHOUT["memory"]})
    assert NONSENSE not in again["evidence"]


def test_a_memory_is_bounded_and_present_members_come_first() -> None:
    """The memory has all present members, but of 200 former members only the newest that fit."""
    series = series_at([[9] * 4] * 2, [[9] * 4] * 2, [0, 0, 1, 1])
    problem = Problem.of({"t": 4}, {"a": ["t"], "b": ["t"]})
    capacity = Capacity(100.0, measured=True, at=0.0)
    costs = {"t": {"2": [8.1, 0.05, 60.0]}}
    gone = {f"{'gone' * 20}-{n}": replace(capacity, at=float(n)) for n in range(200)}
    memory = written({"a": capacity, "b": capacity} | gone, costs, series, problem)
    assert len(json.dumps(memory)) <= 4096 + 100 * 4 + 500 * 2
    assert memory["members"].keys() >= {"a", "b"}
    newest = f"{'gone' * 20}-199"
    assert newest in memory["members"]
    assert f"{'gone' * 20}-0" not in memory["members"]
    known, _, rows = recalled(memory, series, problem)
    assert known["b"] == capacity
    assert rows in ({}, costs)
