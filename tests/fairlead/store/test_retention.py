"""Retention: old days of all histories and unneeded rows are deleted."""

import dataclasses
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import psycopg
import pytest
from sqlalchemy import Engine, text

from fairlead.domain.records import Decision, Findings, StoredPlan
from fairlead.errors import PlanStateError, StoreUnavailableError
from fairlead.store.engine import create_store_engine, transaction
from fairlead.store.freezes import freeze_plans
from fairlead.store.plans import PlanStore
from fairlead.store.retention import history_days, prune
from tests.fairlead.store.test_history import lag_table, query
from tests.fixtures.plans import MakeDraft, make_metrics
from tests.logins import Login
from tests.stored import plan_history, record_adoption, record_decision

pytestmark = pytest.mark.postgres

NOON = datetime(2026, 1, 10, 12, tzinfo=UTC)
#: Tables that grow with each sample or decision, partitioned by day.
HISTORIES = ("balance", "candidate", "decision", "group_sample", "partition_lag", "plan_adoption")
Plans = Callable[..., StoredPlan]


def count(engine: Engine, table: str, where: str = "true") -> int:
    (row,) = query(engine, f"SELECT count(*) FROM fairlead_raw.{table} WHERE {where}")
    return int(row["count"])


def keep(
    store: PlanStore, no_plan: Decision, at: datetime, *, lag_max: int, **changes: Any
) -> None:
    """Record the decision "no change" on a group."""
    observed = make_metrics(lag_max=lag_max, lag_mean=100.0, forecast_time_lag_s=float(lag_max))
    changed: dict[str, Any] = {
        "snapshot_id": f"{at:%Y%m%dT%H%M}",
        "snapshot_at": at,
        "observed": observed,
    }
    record_decision(store, dataclasses.replace(no_plan, **(changed | changes)))


def finding(diagnosis: str) -> Findings:
    return Findings(
        diagnosis=diagnosis,
        names=(),
        evidence="",
        forecast_time_lag_s=1.0,
        utilisation=0.5,
        capacities={},
    )


def adopt(store: PlanStore, at: datetime, *, as_planned: int, version: int = 1) -> None:
    """Record how many partitions of `orders` had their planned owner at this time."""
    record_adoption(store, "orders", version, observed_at=at, planned=3, as_planned=as_planned)


@pytest.fixture
def three_days(store: PlanStore) -> PlanStore:
    """Return a store with lag snapshots at noon on three days."""
    for number in range(3):
        store.record_lag(lag_table(f"s{number}", NOON + timedelta(days=number), "a", "b"))
    return store


def test_days_are_divided_at_midnight_utc(store: PlanStore, engine: Engine) -> None:
    """Days begin at midnight UTC, in any time zone of the session."""
    midnight = datetime(2026, 1, 10, tzinfo=UTC)
    store.record_lag(lag_table("before", midnight - timedelta(microseconds=1), "a"))
    store.record_lag(lag_table("after", midnight, "a"))
    with transaction(engine) as connection:
        connection.execute(text("SET TIME ZONE 'Asia/Tokyo'"))
        connection.execute(text("SELECT fairlead_raw.ensure_day('2026-01-11')"))
    assert [day.day for day in history_days(engine)] == [date(2026, 1, n) for n in (9, 10, 11)]
    prune(engine, midnight)
    assert query(engine, "SELECT DISTINCT snapshot_id FROM fairlead.lag_history") == [
        {"snapshot_id": "after"}
    ]


def test_writers_and_prunes_at_once_go_on(store: PlanStore, engine: Engine) -> None:
    """If rows of new days are inserted while old days are dropped, all new rows are kept."""
    with transaction(engine) as connection:
        connection.execute(text("ALTER FUNCTION fairlead.prune_history SET lock_timeout = 0"))
    for number in range(1, 6):
        store.record_lag(lag_table(f"old{number}", NOON - timedelta(days=number), "a"))

    def write(group: str) -> int:
        return sum(
            store.record_lag(lag_table(f"s{number}", NOON + timedelta(days=number), group))
            for number in range(5)
        )

    with ThreadPoolExecutor(6) as pool:
        prunes = [
            pool.submit(prune, engine, NOON - timedelta(days=5 - number)) for number in range(1, 6)
        ]
        assert list(pool.map(write, "abcd")) == [10] * 4
        # Two simultaneous prunes may drop the same day, but in different histories.
        gone = {day.day for future in prunes for day in future.result().days}
    assert gone == {date(2026, 1, number) for number in range(5, 10)}
    assert [day.day for day in history_days(engine)] == [date(2026, 1, n) for n in range(10, 15)]
    assert query(engine, "SELECT count(*) FROM fairlead.lag_history") == [{"count": 40}]


def test_prune_gives_up_if_a_reader_does_not_end(three_days: PlanStore, engine: Engine) -> None:
    """Pruning ends with an error after its lock time-out, and drops nothing."""
    assert three_days
    with transaction(engine) as reading:
        reading.execute(text("SELECT count(*) FROM fairlead_raw.partition_lag"))
        with transaction(engine) as connection:
            connection.execute(
                text("ALTER FUNCTION fairlead.prune_history SET lock_timeout = '50ms'")
            )
        with pytest.raises(StoreUnavailableError, match="lock timeout"):
            prune(engine, NOON + timedelta(days=2))
    assert len(history_days(engine)) == 3


def test_every_history_is_pruned_and_plans_keep_results(
    store: PlanStore, engine: Engine, publish: Plans, no_plan: Decision
) -> None:
    """Seven of ten days are dropped from each history, but plans' results and summaries stay."""
    publish("first", snapshot_at=NOON)
    for number in range(10):
        at = NOON + timedelta(days=number)
        store.record_lag(lag_table(f"s{number}", at, "orders"))
        keep(store, no_plan, at + timedelta(hours=1), lag_max=100 + number)
        adopt(store, at + timedelta(hours=2), as_planned=number % 4)
    before = plan_history(store, "orders")
    days = query(engine, "SELECT * FROM fairlead.group_day ORDER BY day")
    assert count(engine, "decision") == 11

    gone = prune(engine, NOON + timedelta(days=7), NOON - timedelta(days=400))

    assert len(gone.days) == 7
    assert plan_history(store, "orders") == before
    assert query(engine, "SELECT * FROM fairlead.group_day ORDER BY day") == days
    assert count(engine, "decision") == 3
    assert count(engine, "balance") == 3
    assert count(engine, "candidate") == 0  # only the first day, which was dropped, had candidates
    assert count(engine, "plan_adoption") == 3
    assert count(engine, "lag_snapshot") == 3
    kept = query(engine, "SELECT history, count(*) FROM fairlead.history_days() GROUP BY 1")
    assert {row["history"]: row["count"] for row in kept} == dict.fromkeys(HISTORIES, 3)


def test_summary_of_a_day_has_its_outcomes_and_metrics(
    store: PlanStore, engine: Engine, no_plan: Decision, draft: MakeDraft
) -> None:
    """A day's summary counts each outcome, and has the worst metrics of all decisions."""
    keep(store, no_plan, NOON, lag_max=300)
    keep(store, no_plan, NOON - timedelta(hours=3), lag_max=150)
    keep(store, no_plan, NOON + timedelta(hours=2), lag_max=200, outcome="failed", reason="down")
    record_decision(
        store,
        draft("plan", snapshot_at=NOON + timedelta(hours=1), observed=make_metrics(lag_max=1.0)),
    )
    keep(store, no_plan, NOON + timedelta(days=1), lag_max=400, observed=None)
    first, second = query(engine, "SELECT * FROM fairlead.group_day ORDER BY day")
    assert first == {
        "group_id": "orders",
        "day": NOON.date(),
        "plans": 1,
        "no_changes": 2,
        "failures": 1,
        "imbalance_worst": Decimal("3.000"),
        "lag_max_worst": 300,
        "forecast_time_lag_s_worst": 300.0,
        "rebalances": 0,
    }
    assert (second["no_changes"], second["imbalance_worst"]) == (1, None)


def test_only_unpublished_versions_are_pruned(
    store: PlanStore, engine: Engine, publish: Plans, propose: Plans, approve: Plans
) -> None:
    """Only old expired and stale versions are deleted; a group's newest version is kept."""
    publish("s1")
    propose("s2")  # expires when the next version is proposed
    plan = propose("s3")
    store.reject("orders", plan.version, reason="not now")
    approve("s4")  # becomes stale when the next version is proposed
    propose("s5")
    store.expire_due(datetime(2200, 1, 1, tzinfo=UTC))
    states = {row["version"]: row["state"] for row in plan_history(store, "orders")}
    assert states == {1: "published", 2: "expired", 3: "rejected", 4: "stale", 5: "expired"}

    before_they_ended = prune(engine, datetime.now(UTC)).rows
    assert before_they_ended["versions never followed"] == 0
    gone = prune(engine, datetime.now(UTC) + timedelta(days=1)).rows

    assert gone["versions never followed"] == 2
    assert [row["version"] for row in plan_history(store, "orders")] == [1, 3, 5]
    for table in ("plan_event", "moved_partition", "plan_balance"):
        assert count(engine, table, "version IN (2, 4)") == 0
        assert count(engine, table, "version IN (1, 3, 5)") > 0
    assert query(engine, "SELECT group_id, versions FROM fairlead.plan_pruned") == [
        {"group_id": "orders", "versions": 2}
    ]
    assert propose("s6").version == 6
    with pytest.raises(PlanStateError, match="no version 4"):
        store.get("orders", 4)


def test_ended_diagnoses_and_groups_without_rows_are_pruned(
    store: PlanStore, engine: Engine, no_plan: Decision, propose: Plans
) -> None:
    """Old ended diagnoses are deleted, as are groups with no plan, freeze, summary or diagnosis."""
    with transaction(engine) as connection:
        connection.execute(
            text(
                "INSERT INTO fairlead_raw.consumer_group (group_id, first_seen_at) VALUES"
                " ('gone', '2020-01-01'), ('orders', '2020-01-01'), ('planned', '2020-01-01'),"
                " ('frozen', '2020-01-01')"
            )
        )
    freeze_plans(engine, "frozen", reason="incident")
    propose("p", group="planned")
    for group, number, diagnosis in (
        ("gone", 0, "unknown"),
        ("orders", 0, "unknown"),
        ("orders", 1, "overloaded"),
        ("orders", 9, "healthy"),
    ):
        store.record_findings({group: (NOON + timedelta(days=number), finding(diagnosis))}, {})
    keep(store, no_plan, NOON, lag_max=1, group="gone")
    keep(store, no_plan, NOON + timedelta(days=9), lag_max=1)

    gone = prune(engine, NOON + timedelta(days=5), NOON + timedelta(days=5)).rows

    assert gone["past diagnoses"] == 1
    assert gone["days of groups in summary"] == 2  # one of group `gone`, one of group `planned`
    assert gone["groups without any rows"] == 1
    assert store.known_groups() == ["frozen", "orders", "planned"]
    held = query(engine, "SELECT diagnosis FROM fairlead.diagnosis_history ORDER BY since")
    assert [row["diagnosis"] for row in held] == ["overloaded", "healthy"]


@pytest.mark.parametrize("roles", [(), ("fairlead_planner",)])
def test_no_login_can_block_decisions_on_a_new_day(
    migrated: str, no_plan: Decision, login: Login, roles: tuple[str, ...]
) -> None:
    """A decision is stored even if another login holds the strongest locks allowed to it."""
    engine = create_store_engine(f"{migrated}&options=-c%20lock_timeout%3D2s")
    with psycopg.connect(login(*roles)) as stranger:
        with pytest.raises(psycopg.errors.InsufficientPrivilege), stranger.transaction():
            stranger.execute("SELECT pg_advisory_lock(oid::bigint) FROM pg_class")
        for table in (
            set(HISTORIES) - {"decision"} if roles else ()
        ):  # planners cannot lock `decision`
            stranger.execute(f"LOCK TABLE fairlead_raw.{table} IN ROW EXCLUSIVE MODE".encode())
        keep(PlanStore(engine), no_plan, NOON, lag_max=1)
    assert [day.day for day in prune(engine, NOON + timedelta(days=2)).days] == [NOON.date()]
    engine.dispose()
