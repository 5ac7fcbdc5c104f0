"""`fairlead assign` and `fairlead partition` answer every input line, valid or not."""

import base64
import json
import subprocess
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from assignors.registry import ASSIGNORS, LAG_BLIND
from fairlead.common.json_lines import answer_lines
from fairlead.surfaces.cli import app
from fairlead.surfaces.cli.assign_answers import answer_problem
from tests.lengths import form
from tests.programs import FAIRLEAD
from tests.waiting import PATIENCE_S

PROBLEM: dict[str, Any] = {
    "assignor": "sticky",
    "topics": {"t0": 3},
    "members": {
        "C0": {
            "topics": ["t0"],
            "owned": {"t0": [0, 1]},
            "generation": 5,
            "instance_id": None,
            "rack": None,
            "capacity": 1.0,
        },
        "C1": {"topics": ["t0"]},
    },
    "lags": {"t0": [100_000, 60_000, 50_000]},
}


def run(command: str, *lines: object) -> tuple[list[Any], int]:
    """Pass lines to a command; return its answers and exit code. Objects are encoded as JSON."""
    text = "".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines)
    result = CliRunner().invoke(app, [command], input=text)
    return [json.loads(line) for line in result.stdout.splitlines()], result.exit_code


def test_answers_a_problem_with_assignment_and_metrics() -> None:
    """The answer has all fields, with the values that the document of the interface shows."""
    answers, code = run("assign", PROBLEM)
    assert answers == [
        {
            "assignment": {"C0": {"t0": [0, 1]}, "C1": {"t0": [2]}},
            "metrics": {
                "count_min": 1,
                "count_max": 2,
                "balance_score": 1,
                "lag_max": 160_000,
                "lag_mean": 105_000.0,
                "lag_lower_bound": 105_000,
                "gap": pytest.approx(55 / 105),
                "kept": 2,
                "moved": 0,
                "placed": 1,
                "topic_spread": 1.0,
            },
        }
    ]
    assert code == 0


def test_invalid_line_does_not_affect_other_lines() -> None:
    """Every line, even an invalid or empty one, gets one answer; an error makes the exit code 1."""
    answers, code = run("assign", PROBLEM, "{]", "", PROBLEM, [1], "")
    assert ["error" in answer for answer in answers] == [False, True, True, False, True, True]
    assert answers[0] == answers[3]
    assert code == 1


def test_a_group_without_members_is_no_error() -> None:
    """If a group has no members, every assignor returns an empty assignment."""
    for name in ASSIGNORS:
        answers, code = run("assign", {"assignor": name, "topics": {"t": 2}, "members": {}})
        assert answers[0]["assignment"] == {}
        assert set(answers[0]["metrics"].values()) == {0}
        assert code == 0


@pytest.mark.parametrize("name", sorted(set(ASSIGNORS) - LAG_BLIND))
def test_assigning_by_lag_needs_lags(name: str) -> None:
    """If `lags` is missing, an assignor that uses lags reports an error, and does not assume 0."""
    problem = {**PROBLEM, "assignor": name}
    forgotten = {key: value for key, value in problem.items() if key != "lags"}
    answers, code = run("assign", forgotten, {**forgotten, "lags": None}, problem)
    message = f"lags: is missing; {name} needs it"
    assert answers[:2] == [{"error": message}, {"error": message}]
    assert ("assignment" in answers[2], code) == (True, 1)
    answers, code = run("assign", {**forgotten, "lags": {}}, {**forgotten, "topics": {"t0": 0}})
    assert (["assignment" in answer for answer in answers], code) == ([True, True], 0)


@pytest.mark.parametrize("name", ["problem", "name"])
def test_options_cannot_be_internal_arguments(name: str) -> None:
    """An option with the name of an internal argument is reported as unknown."""
    bad = {"assignor": "range", "topics": {}, "members": {}, "options": {name: 1}}
    answers, code = run("assign", bad, PROBLEM)
    assert f"options.{name}: range has no such option" in answers[0]["error"]
    assert ("assignment" in answers[1], code) == (True, 1)


def test_lags_beyond_int64_are_summed_exactly() -> None:
    """A sum of lags beyond int64 is an exact JSON integer."""
    largest = 2**63 - 1
    problem = {**PROBLEM, "assignor": "range", "lags": {"t0": [largest] * 3}}
    (answer,), _ = run("assign", problem)
    assert answer["metrics"]["lag_max"] == 2 * largest


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"lags": {"t0": [1, 2]}}, "lags.t0: 2 values for 3 partitions"),
        ({"assignor": "best"}, "assignor: 'best' is not one of"),
        ({"assignor": None}, "assignor: null is not a name"),
        ({"options": {"speed": 1}}, "options.speed: sticky has no such option"),
        ({"options": {"stickiness_first": 1}}, "options.stickiness_first: 1 is neither"),
        ({"options": []}, "options: [] is not an object"),
        ({"option": {}}, "option: no such field; the fields are arrival_rates, assignor,"),
        ({"members": []}, "members: [] is not an object"),
        ({"members": {"C0": ["t0"]}}, 'members.C0: ["t0"] is not an object'),
        ({"members": {"C0": {}}}, "members.C0.topics: is missing"),
        ({"members": {"C0": {"topics": None}}}, "members.C0.topics: None is not a list"),
        (
            {"members": {"C0": {"topics": [], "lag": 1}}},
            "members.C0.lag: no such field; the fields are",
        ),
        ({"members": {"C0": {"topics": [], "capacity": "1"}}}, "members.C0.capacity: '1' is"),
        ({"topics": {"t0": "3"}}, "topics.t0: '3' is not an integer"),
        ({"topics": None}, "topics: None is not an object"),
    ],
)
def test_error_names_the_field_and_the_reason(change: dict[str, Any], message: str) -> None:
    """An error starts with the path of the invalid field, such as `members.a.topics`."""
    (answer,), code = run("assign", {**PROBLEM, **change})
    assert answer["error"].startswith(message)
    assert code == 1


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"assignor": "range"}', "topics: is missing"),
        ('{"topics": {"t": 1}, "topics": {}}', 'the name "topics" occurs twice in one object'),
        ('{"topics": NaN}', "not JSON: JSON has no number NaN"),
        ('{"topics": -Infinity}', "not JSON: JSON has no number -Infinity"),
        ("[" * 100_000, "not JSON: "),
        ("1" * 5000, "not JSON: "),
        ('"\\ud800"', '"\\ud800" is not an object'),
        ("\x00", "not JSON: "),
    ],
)
def test_what_is_not_json_is_an_error_line(line: str, message: str) -> None:
    """Invalid JSON is an error, as are NaN and repeated names, which Python's parser accepts."""
    (answer,), code = run("assign", line)
    assert answer["error"].startswith(message)
    assert code == 1


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=8,
)


@settings(max_examples=form(short=150, long=3000), deadline=None)
@given(
    field=st.sampled_from([*PROBLEM, "options", "replica_racks", "arrival_rates"]),
    value=JSON | st.dictionaries(st.just("t0"), JSON),
    member=st.sampled_from([None, *PROBLEM["members"]["C0"]]),
)
def test_any_value_gets_an_answer(field: str, value: Any, member: str | None) -> None:
    """For any value of a field, the answer is an assignment or an error, never a crash."""
    problem = json.loads(json.dumps({**PROBLEM, "assignor": "sticky-lag-aware"}))
    if member:
        problem["members"]["C0"][member] = value
    else:
        problem[field] = value
    (answer,) = answer_lines([json.dumps(problem).encode()], answer_problem)
    assert ("error" in answer) != ("assignment" in answer)
    json.dumps(answer, allow_nan=False)


ENDLESS = [2**31, 2**62, 2**63 - 1, 2**63, 2**64 - 1, 10**20, 10**400]


@pytest.mark.parametrize("option", ["max_moves", "max_count_skew", "max_topic_count_skew"])
@pytest.mark.parametrize("other", [["t0"], []], ids=["equal", "different"])
def test_a_huge_limit_is_no_limit(option: str, other: list[str]) -> None:
    """A huge limit does not overflow: the answer is the same as without a limit."""
    problem = {**PROBLEM, "assignor": "sticky-lag-aware"}
    problem["members"] = {**PROBLEM["members"], "C1": {"topics": other}}
    lines = [{**problem, "options": {option: limit}} for limit in [None, *ENDLESS]]
    answers, code = run("assign", *lines)
    assert answers == [answers[0]] * len(lines)
    assert ("assignment" in answers[0], code) == (True, 0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"arrival_rates": {"t0": [10**400, 0, 0]}}, "arrival_rates.t0: a rate is beyond"),
        ({"topics": {"t0": 10**400}}, "topics.t0: 1000"),
        ({"lags": {"t0": [10**400, 0, 0]}}, "lags.t0: 1000"),
        ({"members": {"C0": {"topics": [], "capacity": 10**400}}}, "members.C0.capacity: 1000"),
        ({"members": {"C0": {"topics": [], "generation": 10**400}}}, "members.C0.generation: 1000"),
        ({"assignor": "x" * 10**6}, "assignor: 'xxx"),
        ({"topics": {"\ud800" * 10**6: -1}}, "topics.\ud800"),
    ],
)
def test_error_of_a_huge_value_is_short(change: dict[str, Any], message: str) -> None:
    """The error for a huge value does not repeat the whole value."""
    (answer,), code = run("assign", {**PROBLEM, **change})
    assert answer["error"].startswith(message)
    assert (len(answer["error"]) < 1100, code) == (True, 1)


def test_deeply_nested_value_is_an_error_line() -> None:
    """Values nested near Python's recursion limit get an error that is not reported as a bug."""
    for depth in range(500, 1050):
        line = '{"assignor": "range", "members": {}, "topics": ' + "[" * depth + "]" * depth + "}"
        (answer,) = answer_lines([line.encode()], answer_problem)
        assert "a bug of Fairlead" not in answer["error"]


def test_repeated_name_in_a_large_line_is_found_quickly() -> None:
    """A repeated name at the end of a line of several megabytes is reported quickly."""
    names = [f"t{number}" for number in range(200_000)]
    members = ",".join(f'"{name}": {{}}' for name in [*names, names[-1]])
    problem = {**PROBLEM, "members": {"C0": {"topics": [*names, names[-1]]}}}
    answers, _ = run("assign", f'{{"members": {{{members}}}}}', problem)
    assert answers == [
        {"error": 'the name "t199999" occurs twice in one object'},
        {"error": "members.C0.topics: names 't199999' twice"},
    ]


def test_each_line_is_answered_at_once() -> None:
    """A program can read the answer to one line before it sends the next line."""
    with subprocess.Popen(
        [FAIRLEAD, "assign"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for _ in range(3):
            process.stdin.write(json.dumps(PROBLEM) + "\n")
            process.stdin.flush()
            assert "assignment" in json.loads(process.stdout.readline())
        process.stdin.close()
        assert process.wait(timeout=PATIENCE_S) == 0


def test_partition_is_that_of_kafkas_producer() -> None:
    """A key in UTF-8 or base64 gets the partition that Kafka's producer chooses."""
    keys = ["orders", "", "ключ"]
    lines = [{"key": key, "key_encoding": "utf8", "partitions": 12} for key in keys]
    encoded = [
        {"key": base64.b64encode(key.encode()).decode(), "key_encoding": "base64", "partitions": 12}
        for key in keys
    ]
    plain, code = run("partition", *lines)
    assert (plain, code) == run("partition", *encoded)
    assert plain[0] == {"partition": 0}
    assert code == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"partitions": 0}, "partitions: 0 is not a number of partitions"),
        ({"partitions": True}, "partitions: true is not a number of partitions"),
        ({"partitions": 1.0}, "partitions: 1.0 is not a number of partitions"),
        ({"partitions": 2**31}, "partitions: 2147483648 is not a number of partitions"),
        ({"key": None}, "key: null is not a text"),
        ({"key": "\ud800"}, "key: is not utf8"),
        ({"key": "?", "key_encoding": "base64"}, "key: is not base64"),
        ({"key_encoding": "hex"}, 'key_encoding: "hex" is neither utf8 nor base64'),
        ({"topic": "t"}, "topic: no such field"),
    ],
)
def test_partition_error_names_the_field(change: dict[str, Any], message: str) -> None:
    """The error of an invalid line names the field and the reason, and the exit code is 1."""
    (answer,), code = run("partition", {"key": "k", "partitions": 3, **change})
    assert answer["error"].startswith(message)
    assert code == 1
