"""Planning one group, without Spark."""

from typing import Any

import pyarrow as pa
import pytest

from assignors import registry
from assignors.assignment import Assignment, Spent
from fairlead.spark.planning import CANDIDATES, FRONTIER, OBSERVED, plan_group

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


def planned(roster: pa.Table, loads: pa.Table) -> dict[str, dict[str, Any]]:
    """Return assignor to its row."""
    table = plan_group(roster, loads)
    assert table.schema == CANDIDATES
    rows = table.to_pylist()
    assert {(row["snapshot_id"], row["group"]) for row in rows} <= {("s", "g")}
    return {row["assignor"]: row for row in rows}


ONE_OWNS_ALL = {"a": (["t"], [("t", 0), ("t", 1)]), "b": (["t"], [])}


def test_every_assignor_is_measured_beside_the_observed_assignment() -> None:
    """The example of KAFKA-5337: what is now, and what each assignor would make of it."""
    found = planned(roster(ONE_OWNS_ALL), loads(t=[100, 60, 50]))

    assert list(found) == [OBSERVED, "lag-aware", "range"]
    assert [row["lag_max"] for row in found.values()] == [160, 110, 160]
    assert [row["owner"] for row in found.values()] == [[0, 0, -1], [0, 1, 1], [0, 0, 1]]
    layout = ("topics", "partition_counts", "members", "weights")
    assert [found[OBSERVED][name] for name in layout] == [["t"], [3], ["a", "b"], [100, 60, 50]]
    assert [found["range"][name] for name in layout] == [None] * 4


def test_only_what_members_read_is_planned() -> None:
    """Topics with commits but without subscribers do not enter the problem."""
    found = planned(roster({"a": (["t"], [])}), loads(t=[1], left=[5, 5]))
    assert found[OBSERVED]["topics"] == ["t"]


def test_claims_on_what_is_gone_are_dropped() -> None:
    """A member that still owns a deleted topic or a vanished partition can be planned."""
    members = {"a": (["t", "gone"], [("t", 0), ("t", 9), ("gone", 0)])}
    found = planned(roster(members), loads(t=[1]))
    assert found["range"]["kept"] == 1
    assert found[OBSERVED]["owner"] == [0]


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
    found = planned(roster(members), loads(t=[1]))
    assert list(found) == [OBSERVED]
    assert (found[OBSERVED]["outcome"], found[OBSERVED]["error"]) == (outcome, None)
    assert found[OBSERVED]["lag_max"] == 0
    assert found[OBSERVED]["owner"] is None


def test_a_group_with_an_error_is_not_planned() -> None:
    """What the snapshot says is passed on, without figures."""
    found = planned(roster(ONE_OWNS_ALL, error="rebalancing"), loads(t=[1]))
    assert [(row["error"], row["lag_max"], row["owner"]) for row in found.values()] == [
        ("rebalancing", None, None)
    ]


def test_a_missing_partition_is_an_error() -> None:
    """Where the lag of a partition is unknown, its topic is not planned as if it were shorter."""
    found = planned(roster(ONE_OWNS_ALL), loads(t=[1, 2, 3]).slice(0, 2))
    assert "topic t: the lag of some partition is not known" in found[OBSERVED]["error"]


def test_an_unknown_assignor_or_option_fails_alone() -> None:
    """A policy's mistake is an error of that candidate; the others are there."""
    more = {"assignors": ["nonsense", "lag-aware", "range"], "options": '{"range": {"x": 1}}'}
    found = planned(roster(ONE_OWNS_ALL, **more), loads(t=[1, 2]))
    assert "'nonsense'" in found["nonsense"]["error"]
    assert "options.x" in found["range"]["error"]
    assert [name for name, row in found.items() if row["owner"]] == [OBSERVED, "lag-aware"]


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
    found = planned(roster(ONE_OWNS_ALL, **more), loads(t=[1, 2, 3]))
    assert "RuntimeError('broken by t')" in found["broken"]["error"]
    assert "have no owner: t-2" in found["careless"]["error"]
    assert [name for name, row in found.items() if row["owner"]] == [OBSERVED, "range"]


def test_an_assignors_own_reasons_and_outcome_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """What an assignor says of a move stands beside it, what it says of all in the summary."""

    def talkative(problem: Any) -> Assignment:
        owner = problem.owner.copy()
        owner[0] = 1
        return Assignment(problem, owner, outcome="done", reasons={0: "because", 1: "not moved"})

    monkeypatch.setattr(registry, "ASSIGNORS", {"talkative": talkative})
    found = planned(roster(ONE_OWNS_ALL, assignors=["talkative"]), loads(t=[1, 2]))
    assert found["talkative"]["outcome"] == "done"
    assert found["talkative"]["reasons"] == [
        {"index": 0, "reason": "because"},
        {"index": 1, "reason": "not moved"},
    ]


def test_a_long_frontier_keeps_its_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """What fewer moves would have bought is cut down to what a plot shows; most have none."""

    def patient(problem: Any) -> Assignment:
        path = tuple(Spent(moves, 1000.0 - moves) for moves in range(999))
        return Assignment(problem, problem.owner * 0, frontier=path)

    monkeypatch.setattr(registry, "ASSIGNORS", {**registry.ASSIGNORS, "patient": patient})
    found = planned(roster(ONE_OWNS_ALL, assignors=["patient", "range"]), loads(t=[1, 2]))
    frontier = found["patient"]["frontier"]
    assert len(frontier) == FRONTIER
    assert [frontier[place] for place in (0, -1)] == [
        {"moves": 0, "lag_max": 1000.0},
        {"moves": 998, "lag_max": 2.0},
    ]
    assert found["range"]["frontier"] is None


def test_a_frontier_in_other_units_than_lag_is_left_out() -> None:
    """With a horizon an assignor's loads are arrivals too, unlike the candidates beside it."""

    def of(options: str) -> Any:
        members = roster(ONE_OWNS_ALL, assignors=["sticky-lag-aware"], options=options)
        return planned(members, loads(t=[100, 60]))["sticky-lag-aware"]["frontier"]

    assert of('{"sticky-lag-aware": {"horizon": 0.0}}')
    assert of('{"sticky-lag-aware": {"horizon": 60.0}}') is None


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
