"""Stored lag, metrics and adoption over time, and the public views."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from sqlalchemy import Engine, text

from fairlead.domain.records import Decision, StoredPlan
from fairlead.store.attempts import Attempt, record_attempts
from fairlead.store.engine import transaction
from fairlead.store.event_queries import read_history
from fairlead.store.history_queries import read_groups, read_plans
from fairlead.store.lag_queries import read_lag, read_lag_by_member, read_lag_by_topic
from fairlead.store.monitoring import _LAG
from fairlead.store.plans import PlanStore
from tests.fixtures.plans import make_metrics
from tests.stored import plan_history, record_adoption, record_decision

pytestmark = pytest.mark.postgres

Plans = Callable[..., StoredPlan]


def lag_table(snapshot_id: str, at: Any, *groups: str, partitions: int = 2) -> pa.Table:
    """Return the lag of topic t0 in some groups; partition p has a lag of 10 * p records."""
    rows = [(group, partition) for group in groups for partition in range(partitions)]
    size = len(rows)
    return pa.table(
        {
            "snapshot_id": pa.array([snapshot_id] * size, pa.string()),
            "snapshot_at": pa.array([at] * size, pa.timestamp("us", "UTC")),
            "group": pa.array([group for group, _ in rows], pa.string()),
            "topic": pa.array(["t0"] * size, pa.string()),
            "partition": pa.array([partition for _, partition in rows], pa.int32()),
            "member": pa.array([f"c{p}" if p else None for _, p in rows], pa.string()),
            "begin_offset": pa.array([0] * size, pa.int64()),
            "end_offset": pa.array([100] * size, pa.int64()),
            "committed_offset": pa.array([100 - 10 * p if p else None for _, p in rows]),
            "lag": pa.array([10 * partition for _, partition in rows], pa.int64()),
            "arrival_rate": pa.array([None] * size, pa.float64()),
            "consumption_rate": pa.array([2.5] * size, pa.float64()),
            "time_lag_s": pa.array([None] * size, pa.float64()),
            "status": pa.array(["OK"] * size, pa.string()),
        }
    )


def query(engine: Engine, statement: str) -> list[dict[str, Any]]:
    with transaction(engine) as connection:
        return [dict(row) for row in connection.execute(text(statement)).mappings()]


@pytest.fixture
def at(propose: Plans) -> Any:
    """Return the snapshot time of drafts."""
    return propose("before", group="another").snapshot_at


def test_topics_that_a_group_left_are_listed_last(
    store: PlanStore, engine: Engine, at: Any
) -> None:
    """Topics that the group has left are listed last, and sums do not include them."""
    lag = lag_table("s1", at, "orders", partitions=4)
    gone = lag.column_names.index("status")
    statuses = pa.array(["OK", "OK", None, None])
    store.record_lag(lag.set_column(gone, "status", statuses))
    rows = read_lag(engine, "orders")
    assert [(row["partition"], row["has_left"]) for row in rows] == [
        *((1, False), (0, False)),
        *((3, True), (2, True)),
    ]
    (by_topic,) = read_lag_by_topic(engine, "orders")
    assert (by_topic["partitions"], by_topic["lag"]) == (2, 10)
    assert [row["lag"] for row in read_lag_by_member(engine, "orders")] == [10, 0]
    measured = store.newest_lag("orders")
    assert measured is not None
    assert measured.lags["t0"].tolist() == [0, 10]
    assert measured.statuses == {"OK"}
    with transaction(engine) as connection:
        found = connection.execute(text(_LAG), {"gone_before": at}).mappings().all()
    assert {(row["status"], row["partitions"], int(row["lag"])) for row in found} == {
        *((None, 2, 10), ("OK", 2, 10))
    }


def test_a_snapshot_is_stored_once_per_group(store: PlanStore, at: Any) -> None:
    """If a run is repeated, only groups that are not stored yet are added."""
    assert store.record_lag(lag_table("s1", at, "a", "b")) == 4
    assert store.record_lag(lag_table("s1", at, "a", "b", "c")) == 2
    assert store.record_lag(lag_table("s1", at, "c", "b", "a")) == 0
    assert store.record_lag(lag_table("s2", at + timedelta(seconds=1), "a")) == 2


def test_runs_at_once_store_a_snapshot_once(store: PlanStore, at: Any) -> None:
    """If eight writers store the same groups at the same time, each group is stored once."""
    groups = [f"g{number}" for number in range(20)]

    def record(run: int) -> int:
        return store.record_lag(lag_table("s1", at, *groups[run:], *groups[:run]))

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(record, range(8))) == 40


def test_rollback_has_the_age_of_its_lag(engine: Engine, publish: Plans, propose: Plans) -> None:
    """A rollback uses an older snapshot's lag, which is not shown as the group's newest lag."""
    plan = publish()
    propose("s2")
    propose(
        "s3",
        snapshot_at=plan.snapshot_at + timedelta(hours=1),
        rolled_back_from=1,
        observed=make_metrics(lag_max=1),
    )
    (group,) = read_groups(engine)
    assert (group["lag_max"], group["observed_at"]) == (160_000, plan.snapshot_at)


def test_failed_attempt_is_listed_with_the_group(
    store: PlanStore, engine: Engine, approve: Plans
) -> None:
    """Groups, plans and history show why a plan was not sent, and when the next attempt is."""
    plan = approve()
    at = plan.created_at
    attempt = Attempt("orders", 1, at, "it is rebalancing", at + timedelta(seconds=30))
    record_attempts(store.engine, [attempt])
    (group,) = read_groups(engine)
    assert (group["not_sent_version"], group["not_sent"]) == (1, "it is rebalancing")
    assert group["sent_again_at"] == attempt.again_at
    (row,) = read_plans(engine, "orders", limit=1)
    assert (row["not_sent"], row["not_sent_at"]) == ("it is rebalancing", at)
    events = read_history(engine, "orders", limit=10)
    assert ("not sent", "it is rebalancing") in {(row["event"], row["reason"]) for row in events}


def test_plan_history_has_a_row_for_each_version(
    store: PlanStore,
    publish: Plans,
    propose: Plans,
    no_plan: Decision,
) -> None:
    """A row has approver, moves, and figures: before the plan, predicted, and after adoption."""
    plan = publish("s1")
    for minute in (1, 2):
        record_adoption(
            store,
            "orders",
            1,
            observed_at=plan.snapshot_at + timedelta(minutes=minute),
            planned=3,
            as_planned=minute + 1,
        )
        measured = make_metrics(lag_max=115_500 + minute, topic_spread=float(minute))
        at = datetime.now(UTC) + timedelta(minutes=minute)
        later = replace(no_plan, snapshot_id=f"later-{minute}", snapshot_at=at, observed=measured)
        record_decision(store, later)
    propose("s2")
    first, second = plan_history(store, "orders")
    expected = {
        "version": 1,
        "state": "published",
        "decided_by": store.engine.url.username,
        "decision": "looks fine",
        "moved": 1,
        "placed": 0,
        "lag_max_before": 160_000,
        "lag_max_predicted": 110_000,
        "lag_max_achieved": 115_502,
        "imbalance_predicted": Decimal("1.048"),
        "imbalance_achieved": Decimal("1.100"),
        "topic_spread_before": 1.5,
        "topic_spread_predicted": 1.5,
        "topic_spread_achieved": 2.0,
        "adherence": 1,
    }
    assert {name: first[name] for name in expected} == expected
    assert (second["version"], second["state"], second["decided_by"]) == (2, "proposed", None)
    store.approve("orders", 2, sha256=second["sha256"], reason="within limits", actor="policy")
    assert plan_history(store, "orders")[1]["decided_by"] == "policy"


def test_plan_without_recorded_adoption_is_listed(store: PlanStore, publish: Plans) -> None:
    """`unobserved` returns group and version of those plans that have no recorded adoption."""
    plans = [publish("s1", group=group) for group in ("a", "b")]
    record_adoption(store, "a", 1, observed_at=plans[0].snapshot_at, planned=3, as_planned=3)
    assert store.unobserved(plans) == {("b", 1)}
    assert store.unobserved([]) == set()
