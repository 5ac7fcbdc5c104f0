"""What the analysis remembers of a group: members' capacities, diagnoses, plan requests."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import Engine, text

from fairlead.domain.analysis.capacities import Capacity
from fairlead.domain.candidate_figures import Outcome
from fairlead.domain.plan_requests import PlanRequest, StandingRequest
from fairlead.domain.records import Decision, Findings
from fairlead.store.analysis_memory import standing_requests
from fairlead.store.engine import transaction
from fairlead.store.plans import PlanStore
from tests.fixtures.plans import SNAPSHOT_AT, MakeDraft
from tests.stored import record_decision

pytestmark = pytest.mark.postgres
#: Maximum age of plan requests, longer than any age in these tests.
EVER = timedelta(days=10_000)

SICK = Findings(
    diagnosis="slow member",
    names=("orders-2",),
    evidence="orders-2 can do 40/s where its peers do 100/s.",
    forecast_time_lag_s=321.5,
    utilisation=1.25,
    loss_s=2400.0,
    capacities={
        "orders-1": Capacity(100.0, measured=False, at=SNAPSHOT_AT.timestamp() - 60),
        "orders-2": Capacity(40.0, measured=True, at=SNAPSHOT_AT.timestamp()),
    },
)
WELL = replace(
    SICK, diagnosis="healthy", names=(), evidence="All is well.", forecast_time_lag_s=0.0
)
MINUTE = timedelta(minutes=1)


@pytest.fixture
def rows(engine: Engine) -> Callable[[str], list[dict[str, Any]]]:
    """Return a function that runs a query and returns the rows."""

    def ask(query: str) -> list[dict[str, Any]]:
        with transaction(engine) as connection:
            return [dict(row) for row in connection.execute(text(query)).mappings()]

    return ask


def test_capacities_are_stored_with_the_decision(store: PlanStore, draft: MakeDraft) -> None:
    """A decision's capacities are stored, and returned only for their own group."""
    record_decision(store, draft(findings=SICK))
    assert store.memories(["orders", "billing"]).capacities == {"orders": SICK.capacities}
    assert store.memories(["billing"]).capacities == {}


def test_newer_capacities_replace_older_ones(store: PlanStore, no_plan: Decision) -> None:
    """A new decision replaces all capacities of its own group, but not those of other groups."""
    other = replace(no_plan, group="billing", findings=SICK)
    store.record_decisions([replace(no_plan, findings=SICK), other])
    now = {"orders-2": Capacity(99.0, measured=True, at=SNAPSHOT_AT.timestamp() + 60)}
    later = replace(SICK, capacities=now)
    record_decision(store, replace(no_plan, snapshot_id="s2", findings=later))
    assert store.memories(["orders", "billing"]).capacities == {
        "orders": now,
        "billing": SICK.capacities,
    }


def test_decision_without_findings_forgets_nothing(store: PlanStore, no_plan: Decision) -> None:
    """A failed run, which has no findings, does not delete the group's capacities."""
    record_decision(store, replace(no_plan, findings=SICK))
    record_decision(store, replace(no_plan, snapshot_id="s2", outcome="failed"))
    assert store.memories(["orders"]).capacities == {"orders": SICK.capacities}


def test_changes_of_the_diagnosis_are_rows(
    store: PlanStore, rows: Callable[[str], list[dict[str, Any]]]
) -> None:
    """If a diagnosis stays the same, its row gets a later end; otherwise, a row is added."""
    seen = [
        WELL,
        WELL,
        SICK,
        replace(SICK, evidence="Slower still.", forecast_time_lag_s=400.0),
        WELL,
    ]
    for minute, findings in enumerate(seen):
        store.record_findings({"orders": (SNAPSHOT_AT + minute * MINUTE, findings)}, {})
    history = rows("SELECT * FROM fairlead.diagnosis_history WHERE group_id = 'orders'")
    after = [SNAPSHOT_AT + minute * MINUTE for minute in range(5)]
    assert [
        (row["diagnosis"], row["since"], row["until"], row["last_seen"]) for row in history
    ] == [
        ("healthy", after[0], after[2], after[1]),
        ("slow member", after[2], after[4], after[3]),
        ("healthy", after[4], None, after[4]),
    ]
    assert (history[1]["evidence"], history[1]["forecast_time_lag_s"]) == ("Slower still.", 400.0)
    assert [row["loss_s"] for row in history[:2]] == [2400.0, 2400.0]
    assert history[1]["names"] == ["orders-2"]
    (now,) = rows("SELECT * FROM fairlead.diagnosis")
    assert (now["diagnosis"], now["since"], now["utilisation"]) == ("healthy", after[4], 1.25)
    assert store.memories(["orders"]).capacities == {}


def test_earlier_or_repeated_samples_change_no_diagnosis(
    store: PlanStore, rows: Callable[[str], list[dict[str, Any]]]
) -> None:
    """Findings that are not newer than the stored ones are ignored."""
    store.record_findings({"orders": (SNAPSHOT_AT, SICK)}, {})
    before = rows("SELECT * FROM fairlead.diagnosis_history")
    store.record_findings({"orders": (SNAPSHOT_AT - MINUTE, WELL)}, {})
    store.record_findings({"orders": (SNAPSHOT_AT, WELL)}, {})
    assert rows("SELECT * FROM fairlead.diagnosis_history") == before


def test_plan_request_lasts_while_samples_repeat_it(store: PlanStore) -> None:
    """If samples repeat a plan request, its start is kept; a different request has a new start.

    A sample without a request ends the earlier request.
    """
    slow, hot = (PlanRequest(what, "late") for what in ("slow", "hot"))
    for minute, request in enumerate([slow, slow, hot, None, hot]):
        requests = {} if request is None else {"orders": request}
        store.record_findings({"orders": (SNAPSHOT_AT + minute * MINUTE, SICK)}, requests)
        expected = {0: (slow, 0, 0), 1: (slow, 0, 1), 2: (hot, 2, 2), 4: (hot, 4, 4)}.get(minute)
        if expected is None:
            assert standing_requests(store.engine, EVER) == {}
        else:
            standing, *minutes = expected
            since, at = (SNAPSHOT_AT + number * MINUTE for number in minutes)
            assert standing_requests(store.engine, EVER) == {
                "orders": StandingRequest(standing, since, at)
            }


def test_old_plan_request_does_not_count(store: PlanStore) -> None:
    """An old plan request is ignored; its age is measured by the database's clock."""
    store.record_findings({"orders": (SNAPSHOT_AT, SICK)}, {"orders": PlanRequest("slow", "late")})
    assert [*standing_requests(store.engine, EVER)] == ["orders"]
    assert standing_requests(store.engine, timedelta(minutes=3)) == {}


def test_planning_run_keeps_plan_requests(store: PlanStore, draft: MakeDraft) -> None:
    """A planning run's decision does not end the plan request that a sample has made."""
    request = PlanRequest("slow", "late")
    store.record_findings({"orders": (SNAPSHOT_AT - MINUTE, SICK)}, {"orders": request})
    for number, findings in enumerate((SICK, WELL)):
        at = SNAPSHOT_AT + number * MINUTE
        record_decision(store, draft(f"s{number}", snapshot_at=at, findings=findings))
        since = SNAPSHOT_AT - MINUTE
        assert standing_requests(store.engine, EVER) == {
            "orders": StandingRequest(request, since, since)
        }


def test_sample_from_a_fast_clock_is_replaced_by_the_next(
    store: PlanStore, rows: Callable[[str], list[dict[str, Any]]]
) -> None:
    """A sample with a future time gets the database's time, so the next sample can replace it."""
    ahead = datetime.now(UTC) + timedelta(hours=1)
    store.record_findings({"orders": (ahead, SICK)}, {"orders": PlanRequest("slow", "late")})
    assert [*standing_requests(store.engine, timedelta(minutes=30))] == ["orders"]
    store.record_findings({"orders": (datetime.now(UTC), WELL)}, {})
    (now,) = rows("SELECT * FROM fairlead.diagnosis")
    assert now["diagnosis"] == "healthy"
    assert standing_requests(store.engine, EVER) == {}


def test_last_decision_ignores_failures_and_fast_clocks(store: PlanStore) -> None:
    """A decision on a snapshot with a future time does not hide later decisions."""

    def decide(number: int, at: datetime, outcome: Outcome = "no change") -> datetime:
        decision = Decision(
            group="orders", snapshot_id=f"s{number}", snapshot_at=at, reason="", outcome=outcome
        )
        record_decision(store, decision)
        return store.last_decisions()["orders"]

    now = datetime.now(UTC)
    first = decide(1, now - 3 * MINUTE)
    assert decide(2, now - 2 * MINUTE, "failed") == first
    ahead = decide(3, now + 60 * MINUTE)
    assert ahead > first
    assert decide(4, now - MINUTE) > ahead
