"""Analysis of one group, without Spark."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from assignors import registry
from assignors.assignment import Assignment
from fairlead.domain.analysis.capacities import Capacity
from fairlead.domain.candidate_figures import OBSERVED
from fairlead.domain.candidate_rows import analyse_group
from fairlead.domain.samples.questions import Group, PlanningOptions
from fairlead.spark.planning import CANDIDATES, as_batch
from tests.recalled import CONSUMED, recalled
from tests.samples import filled, samples

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
PLANNING = PlanningOptions(assignors=("lag-aware", "range"))
Members = dict[str, tuple[list[str], list[tuple[str, int]]]]


def group(
    members: Members,
    lags: dict[str, list[int]],
    *,
    error: str | None = None,
    protocol: str = "range",
    series: pa.Table | None = None,
    **more: Any,
) -> Group:
    """Return a group with these members (subscriptions, owned partitions) and lags of topics."""
    if series is None:
        series = samples(sample_of(members, lags, error=error, protocol=protocol))
    return Group(series, **more)


def sample_of(members: Members, lags: dict[str, list[int]], **columns: Any) -> dict[str, Any]:
    """Return a sample of a group with these members and lags."""
    names = sorted(members)
    owners = {
        partition: names.index(name) for name, (_, owned) in members.items() for partition in owned
    }
    partitions = [(topic, number) for topic in sorted(lags) for number in range(len(lags[topic]))]
    lag = [lags[topic][number] for topic, number in partitions]
    return {
        "group": "g",
        "at": NOON,
        "topics": sorted(lags),
        "counts": [len(lags[topic]) for topic in sorted(lags)],
        "begin": [0] * len(lag),
        "end": [CONSUMED + lag_of for lag_of in lag],
        "committed": [CONSUMED] * len(lag),
        "members": names,
        "owner": [owners.get(partition, -1) for partition in partitions],
        "subscriptions": [members[name][0] for name in names],
        **columns,
    }


def analysed(group: Group, planning: PlanningOptions = PLANNING) -> dict[str, dict[str, Any]]:
    """Return each assignor's row, with the columns that are written to the warehouse."""
    batch = as_batch(analyse_group(group, planning))
    assert batch.schema == CANDIDATES
    rows = batch.to_pylist()
    assert {(row["snapshot_id"], row["group"]) for row in rows} <= {("s", "g")}
    return {row["assignor"]: row for row in rows}


ONE_OWNS_ALL: Members = {"a": (["t"], [("t", 0), ("t", 1)]), "b": (["t"], [])}
SKEWED: Members = {"a": (["t"], [("t", 0), ("t", 1)]), "b": (["t"], [("t", 2), ("t", 3)])}
BACKLOG = {"t": [100, 80, 5, 5]}


def fallen_behind(**more: Any) -> Group:
    """Return a group in which one member has fallen behind for twenty minutes."""
    return group(SKEWED, BACKLOG, series=recalled(filled(sample_of(SKEWED, BACKLOG))), **more)


def test_every_assignor_is_compared_with_the_observed_assignment() -> None:
    """A row has the highest lag that a member has under one assignment (example of KAFKA-5337)."""
    found = analysed(group(ONE_OWNS_ALL, {"t": [100, 60, 50]}))
    assert list(found) == [OBSERVED, "lag-aware", "range"]
    assert [row["lag_max"] for row in found.values()] == [160, 110, 160]
    assert [row["owner"] for row in found.values()] == [[0, 0, -1], [0, 1, 1], [0, 0, 1]]
    layout = ("topics", "partition_counts", "weights")
    assert [found[OBSERVED][name] for name in layout] == [["t"], [3], [100, 60, 50]]
    assert [found["range"][name] for name in layout] == [None] * 3


def test_group_that_falls_behind_is_planned_with_its_diagnosis() -> None:
    """Rows have the diagnosis, and a forecast for the present assignment and each candidate."""
    found = analysed(fallen_behind(), replace(PLANNING, assignors=("sticky-lag-aware", "range")))
    observed, plan = found[OBSERVED], found["sticky-lag-aware"]
    assert (observed["decision"], observed["chosen"]) == ("plan", "sticky-lag-aware")
    assert (observed["diagnosis"], observed["names"]) == ("unbalanced", ["a"])
    assert observed["evidence"].startswith("a is at 11")
    assert observed["decision_reason"]
    assert observed["utilisation"] > 1 > plan["utilisation"]
    assert observed["forecast_time_lag_s"] > 60 > plan["forecast_time_lag_s"]
    assert found["range"]["forecast_time_lag_s"] == pytest.approx(observed["forecast_time_lag_s"])
    assert plan["moved"] >= 1
    known = {capacity["member"]: capacity for capacity in observed["capacities"]}
    assert known["a"]["measured"]
    assert known["a"]["records_per_s"] == pytest.approx(1.0, rel=0.1)
    assert not known["b"]["measured"]
    assert np.array(observed["arrival_rates"]) * 60 == pytest.approx([35, 34, 6, 6], rel=0.1)
    assert len(observed["capacity_used"]) == 2


def test_capacities_are_remembered_by_client_id() -> None:
    """An absent member's capacity is kept under its client id, but not under its member id."""
    gone = "client-2f1b7a3c-1111-2222-3333-0123456789ab"
    slow = Capacity(7.5, measured=True, at=NOON.timestamp() - 60)
    known = dict.fromkeys(("b", "left", gone), slow)
    observed = analysed(fallen_behind(capacities=known))[OBSERVED]
    found = {capacity["member"]: capacity["records_per_s"] for capacity in observed["capacities"]}
    assert found["left"] == 7.5
    assert found["b"] == 7.5
    assert gone not in found


def test_healthy_group_needs_no_candidates() -> None:
    """If `compare` is False, a healthy group gets no candidates, which saves most of the work."""
    calm = {"t": [0, 0, 0, 0]}
    healthy = group(SKEWED, calm, series=recalled(filled(sample_of(SKEWED, calm))))
    assert list(analysed(healthy)) == [OBSERVED, "lag-aware", "range"]
    found = analysed(healthy, replace(PLANNING, compare=False))
    assert list(found) == [OBSERVED]
    assert found[OBSERVED]["diagnosis"] == "healthy"


def test_only_subscribed_topics_are_planned() -> None:
    """Topics that have commits but no subscribers are left out."""
    found = analysed(group({"a": (["t"], [])}, {"t": [1], "left": [5, 5]}))
    assert found[OBSERVED]["topics"] == ["t"]


@pytest.mark.parametrize(
    ("members", "outcome"),
    [
        ({}, "The group has no members"),
        ({"a": ([], [])}, "No member reads a topic that has partitions"),
        ({"a": (["gone"], [])}, "No member reads a topic that has partitions"),
    ],
)
def test_nothing_to_plan_is_an_outcome(members: Members, outcome: str) -> None:
    """A group without members or partitions has an outcome, but no candidates and no error."""
    found = analysed(group(members, {"t": [1]}))
    assert list(found) == [OBSERVED]
    assert (found[OBSERVED]["outcome"], found[OBSERVED]["error"]) == (outcome, None)
    assert found[OBSERVED]["lag_max"] == 0
    assert found[OBSERVED]["owner"] is None
    assert found[OBSERVED]["decision"] is None


def test_unreadable_partition_is_an_error() -> None:
    """A group is not planned if the lag of a partition is unknown."""
    row = sample_of(ONE_OWNS_ALL, {"t": [1, 2]})
    row["end"][1] = -1
    found = analysed(group(ONE_OWNS_ALL, {}, series=samples(row)))
    assert "topic t: the lag of some partition is not known" in found[OBSERVED]["error"]


def test_failing_assignors_do_not_affect_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """The row of a failing assignor has the error; rows of other assignors have assignments."""

    def broken(problem: Any) -> Assignment:
        raise RuntimeError(f"broken by {problem.topics[0]}")

    def invalid(problem: Any) -> Assignment:
        return Assignment(problem, problem.owner)  # leaves partitions without an owner

    monkeypatch.setattr(
        registry, "ASSIGNORS", {**registry.ASSIGNORS, "broken": broken, "invalid": invalid}
    )
    planning = PlanningOptions(assignors=("broken", "invalid", "range"))
    found = analysed(group(ONE_OWNS_ALL, {"t": [1, 2, 3]}), planning)
    assert "RuntimeError('broken by t')" in found["broken"]["error"]
    assert "have no owner: t-2" in found["invalid"]["error"]
    assert [name for name, row in found.items() if row["owner"]] == [OBSERVED, "range"]
