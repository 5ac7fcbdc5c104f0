"""Planning one group, without Spark."""

from typing import Any

import pyarrow as pa
import pytest

from assignors import registry
from assignors.assignment import Assignment
from assignors.moves import MOVED, PLACED
from fairlead.spark.planning import OBSERVED, PLANNED, plan_group

MEMBER: dict[str, Any] = {
    "snapshot_id": "s",
    "group": "g",
    "error": None,
    "assignors": ["lag-aware", "range"],
    "options": "{}",
    "generation": None,
    "instance_id": None,
}
ROSTER = pa.schema(
    {
        "snapshot_id": pa.string(),
        "group": pa.string(),
        "error": pa.string(),
        "assignors": pa.list_(pa.string()),
        "options": pa.string(),
        "member": pa.string(),
        "topics": pa.list_(pa.string()),
        "partitions": pa.list_(pa.struct({"topic": pa.string(), "partition": pa.int32()})),
        "generation": pa.int32(),
        "instance_id": pa.string(),
    }
)
LOADS = pa.schema(
    {
        "topic": pa.string(),
        "partition": pa.int32(),
        "weight": pa.int64(),
        "arrival_rate": pa.float64(),
    }
)


def roster(members: dict[str, tuple[list[str], list[tuple[str, int]]]], **more: Any) -> pa.Table:
    """Return a roster of members: name to subscription and owned partitions."""
    rows = [
        MEMBER
        | {
            "member": name,
            "topics": topics,
            "partitions": [{"topic": topic, "partition": number} for topic, number in owned],
        }
        | more
        for name, (topics, owned) in members.items()
    ]
    return pa.Table.from_pylist(rows or [MEMBER | more], ROSTER)


def loads(**lags: list[int]) -> pa.Table:
    """Return the loads of topics, in no order at all."""
    rows = [
        {"topic": topic, "partition": number, "weight": lag}
        for topic, values in lags.items()
        for number, lag in enumerate(values)
    ]
    return pa.Table.from_pylist(rows[::-1], LOADS)


def planned(roster: pa.Table, loads: pa.Table) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return assignor to its summary, and the partition rows."""
    table = plan_group(roster, loads)
    assert table.schema == PLANNED
    rows = table.to_pylist()
    assert {(row["snapshot_id"], row["group"]) for row in rows} <= {("s", "g")}
    summaries = {row["assignor"]: row for row in rows if row["partition"] is None}
    return summaries, [row for row in rows if row["partition"] is not None]


ONE_OWNS_ALL = {"a": (["t"], [("t", 0), ("t", 1)]), "b": (["t"], [])}


def test_every_assignor_is_measured_beside_the_observed_assignment() -> None:
    """The example of KAFKA-5337: what is now, and what each assignor would make of it."""
    summaries, partitions = planned(roster(ONE_OWNS_ALL), loads(t=[100, 60, 50]))

    assert list(summaries) == [OBSERVED, "lag-aware", "range"]
    assert [row["lag_max"] for row in summaries.values()] == [160, 110, 160]
    aware = [row for row in partitions if row["assignor"] == "lag-aware"]
    assert [
        (row["partition"], row["previous_member"], row["member"], row["weight"], row["reason"])
        for row in aware
    ] == [
        (0, "a", "a", 100.0, None),
        (1, "a", "b", 60.0, MOVED),
        (2, None, "b", 50.0, PLACED),
    ]
    assert len(partitions) == 6


def test_only_what_members_read_is_planned() -> None:
    """Topics with commits but without subscribers do not enter the problem."""
    _, partitions = planned(roster({"a": (["t"], [])}), loads(t=[1], left=[5, 5]))
    assert {row["topic"] for row in partitions} == {"t"}


def test_claims_on_what_is_gone_are_dropped() -> None:
    """A member that still owns a deleted topic or a vanished partition can be planned."""
    members = {"a": (["t", "gone"], [("t", 0), ("t", 9), ("gone", 0)])}
    summaries, partitions = planned(roster(members), loads(t=[1]))
    assert summaries["range"]["kept"] == 1
    assert [row["previous_member"] for row in partitions] == ["a", "a"]


@pytest.mark.parametrize(
    ("members", "outcome"),
    [
        ({}, "The group has no members"),
        ({"a": ([], [])}, "No member reads a topic that has partitions"),
        ({"a": (["gone"], [])}, "No member reads a topic that has partitions"),
    ],
)
def test_nothing_to_plan_is_an_outcome(members: dict[str, Any], outcome: str) -> None:
    """Without members or partitions there are no candidates, and that is no error."""
    summaries, partitions = planned(roster(members), loads(t=[1]))
    assert list(summaries) == [OBSERVED]
    assert (summaries[OBSERVED]["outcome"], summaries[OBSERVED]["error"]) == (outcome, None)
    assert summaries[OBSERVED]["lag_max"] == 0
    assert partitions == []


def test_a_group_with_an_error_is_not_planned() -> None:
    """What the snapshot says is passed on, without figures."""
    summaries, partitions = planned(roster(ONE_OWNS_ALL, error="rebalancing"), loads(t=[1]))
    assert [(row["error"], row["lag_max"]) for row in summaries.values()] == [("rebalancing", None)]
    assert partitions == []


def test_a_missing_partition_is_an_error() -> None:
    """Where the lag of a partition is unknown, its topic is not planned as if it were shorter."""
    summaries, _ = planned(roster(ONE_OWNS_ALL), loads(t=[1, 2, 3]).slice(0, 2))
    assert "topic t: the lag of some partition is not known" in summaries[OBSERVED]["error"]


def test_an_unknown_assignor_or_option_fails_alone() -> None:
    """A policy's mistake is an error of that candidate; the others are there."""
    more = {"assignors": ["nonsense", "lag-aware", "range"], "options": '{"range": {"x": 1}}'}
    summaries, partitions = planned(roster(ONE_OWNS_ALL, **more), loads(t=[1, 2]))
    assert "'nonsense'" in summaries["nonsense"]["error"]
    assert "options.x" in summaries["range"]["error"]
    assert {row["assignor"] for row in partitions} == {"lag-aware"}


def test_an_assignor_that_raises_or_errs_fails_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A defect in one assignor, or an invalid assignment, does not reach the others."""

    def broken(problem: Any) -> Assignment:
        raise RuntimeError(f"broken by {problem.topics[0]}")

    def careless(problem: Any) -> Assignment:
        return Assignment(problem, problem.owner)  # leaves partitions without an owner

    monkeypatch.setattr(
        registry, "ASSIGNORS", {**registry.ASSIGNORS, "broken": broken, "careless": careless}
    )
    more = {"assignors": ["broken", "careless", "range"]}
    summaries, partitions = planned(roster(ONE_OWNS_ALL, **more), loads(t=[1, 2, 3]))
    assert "RuntimeError('broken by t')" in summaries["broken"]["error"]
    assert "have no owner: t-2" in summaries["careless"]["error"]
    assert {row["assignor"] for row in partitions} == {"range"}


def test_an_assignors_own_reasons_and_outcome_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """What an assignor says of a move stands beside it, what it says of all in the summary."""

    def talkative(problem: Any) -> Assignment:
        owner = problem.owner.copy()
        owner[0] = 1
        return Assignment(problem, owner, outcome="done", reasons={0: "because", 1: "not moved"})

    monkeypatch.setattr(registry, "ASSIGNORS", {"talkative": talkative})
    summaries, partitions = planned(roster(ONE_OWNS_ALL, assignors=["talkative"]), loads(t=[1, 2]))
    assert summaries["talkative"]["outcome"] == "done"
    assert [row["reason"] for row in partitions] == ["because", None]


def test_assignors_know_the_arrival_rates(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is known of arrivals reaches the problem; what is unknown counts as none."""
    seen: list[list[float]] = []

    def curious(problem: Any) -> Assignment:
        seen.append(problem.arrival_rates.tolist())
        return Assignment(problem, problem.owner * 0)

    monkeypatch.setattr(registry, "ASSIGNORS", {"curious": curious})
    known = loads(t=[1, 2]).set_column(3, "arrival_rate", pa.array([None, 2.5], pa.float64()))
    planned(roster(ONE_OWNS_ALL, assignors=["curious"]), known)
    assert seen == [[2.5, 0.0]]
