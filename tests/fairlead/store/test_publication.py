"""Publication: one at a time, and nothing recorded that was not sent."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from sqlalchemy import Engine

from fairlead.errors import PlanStateError, StoreUnavailableError
from fairlead.store import PlanStore, StoredPlan
from tests.fairlead.store.conftest import sent

pytestmark = pytest.mark.postgres

Plans = Callable[..., StoredPlan]


def test_where_a_plan_was_published_is_kept(store: PlanStore, publish: Plans) -> None:
    """The group's published plan knows its record."""
    publish()
    plan = store.published("orders")
    assert plan is not None
    assert (plan.topic, plan.partition, plan.record_offset) == ("fairlead.plans", 0, 1)
    assert store.approved_unpublished() == []


def test_the_plan_published_before_is_superseded(store: PlanStore, publish: Plans) -> None:
    """A group has one published plan."""
    publish("s1")
    publish("s2")
    assert [store.get("orders", version).state for version in (1, 2)] == ["superseded", "published"]


def test_a_publisher_that_fails_leaves_the_plan_approved(store: PlanStore, approve: Plans) -> None:
    """Sent or not, what was not recorded is published again: the same bytes."""
    approve()

    def fail() -> None:
        with store.publication("orders") as turn:
            turn.mark_published(sent(1))
            raise ConnectionError

    with pytest.raises(ConnectionError):
        fail()
    (plan,) = store.approved_unpublished(["orders"])
    assert plan.version == 1


def test_a_publisher_that_is_cut_off_leaves_the_plan_approved(
    store: PlanStore, store_url: str, approve: Plans
) -> None:
    """Postgres ends the connection between the send and the record of it."""
    approve()

    def be_cut_off() -> None:
        with (
            psycopg.connect(store_url, autocommit=True) as other,
            store.publication("orders") as turn,
        ):
            other.execute(
                "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity"
                " WHERE datname = current_database() AND application_name = 'fairlead'"
            )
            turn.mark_published(sent(1))

    with pytest.raises(StoreUnavailableError):
        be_cut_off()
    assert [plan.version for plan in store.approved_unpublished()] == [1]


def test_publishers_take_turns(store: PlanStore, approve: Plans) -> None:
    """Of four publishers at once one finds the plan; the others find it published."""
    approve()
    start = threading.Barrier(4)

    def publish(offset: int) -> bool:
        start.wait()
        with store.publication("orders") as turn:
            if turn.plan is None:
                return False
            turn.mark_published(sent(offset))
            return True

    with ThreadPoolExecutor(4) as pool:
        assert sorted(pool.map(publish, range(4))) == [False, False, False, True]


def test_a_stale_plan_says_why(store: PlanStore, engine: Engine, approve: Plans) -> None:
    """The differences are in the event, for whoever asks why it was not published."""
    approve()
    with store.publication("orders") as turn:
        turn.mark_stale(reason="orders-3 joined")
    assert store.get("orders", 1).state == "stale"
    with engine.connect() as connection:
        reason = connection.exec_driver_sql(
            "SELECT reason FROM fairlead.plan_event WHERE state = 'stale'"
        ).scalar_one()
    assert reason == "orders-3 joined"


def test_nothing_waits_nothing_is_published(store: PlanStore, propose: Plans) -> None:
    """A proposed plan does not wait for publication, and an unknown group has none."""
    propose()
    for group in ("orders", "unknown"):
        with store.publication(group) as turn:
            assert turn.plan is None
            with pytest.raises(PlanStateError, match="no approved plan"):
                turn.mark_published(sent(1))
