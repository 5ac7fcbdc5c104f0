"""The outbox: one sender at a time, and nothing recorded that was not sent."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import psycopg
import pytest
from sqlalchemy import Engine

from fairlead.errors import PlanStateError, StoreUnavailableError
from fairlead.store import PlanStore, StoredPlan
from fairlead.store.engine import transaction
from fairlead.store.outbox import Outbox, OutboxEntry, PartitionLock, PublishRequest
from fairlead.store.shared_statements import record_events
from fairlead.wire.record import Kind
from tests.fairlead.store.conftest import LEASE_UNTIL, sent

pytestmark = pytest.mark.postgres

Plans = Callable[..., StoredPlan]
WANTED = PublishRequest("orders", 1, lease_until=LEASE_UNTIL)


def intend(store: PlanStore, wanted: PublishRequest = WANTED) -> list[OutboxEntry]:
    with Outbox(store.engine).turn("plans", 0) as turn:
        return turn.intend([wanted])


def test_where_a_plan_was_published_is_kept(store: PlanStore, publish: Plans) -> None:
    """The group's published plan knows its record, and until when it holds."""
    publish()
    plan = store.published("orders")
    assert plan is not None
    assert (plan.topic, plan.partition, plan.record_offset) == ("fairlead.plans", 0, 1)
    assert plan.lease_until == LEASE_UNTIL
    assert store.approved_unpublished() == []


def test_the_plan_published_before_is_superseded(store: PlanStore, publish: Plans) -> None:
    """A group has one published plan."""
    publish("s1")
    publish("s2")
    assert [store.get("orders", version).state for version in (1, 2)] == ["superseded", "published"]


def test_a_plan_on_its_way_is_not_ended(store: PlanStore, approve: Plans, propose: Plans) -> None:
    """What consumers may follow already does not expire, nor does a newer proposal end it."""
    due = datetime.now(UTC) + timedelta(hours=1)
    approve(expires_at=due)
    (intent,) = intend(store)
    assert store.expire_due(due) == []
    assert propose("s2").version == 2
    assert [row["state"] for row in store.history("orders")] == ["sending", "proposed"]
    (left,) = Outbox(store.engine).outstanding()
    assert (left.epoch, left.plan.version) == (intent.epoch, 1)
    Outbox(store.engine).confirm({"orders": (intent, sent())})
    assert [row["state"] for row in store.history("orders")] == ["published", "proposed"]


def last_turn(store: PlanStore) -> PartitionLock:
    """Return a turn at the partition, which is over."""
    with Outbox(store.engine).turn("plans", 0) as turn:
        return turn.held


def test_a_sender_that_was_cut_off_has_no_intent(
    store: PlanStore, store_url: str, approve: Plans
) -> None:
    """It froze with the lock and lost it: its commit fails, so that it sends nothing."""
    approve()

    def be_cut_off() -> None:
        with (
            psycopg.connect(store_url, autocommit=True) as other,
            Outbox(store.engine).turn("plans", 0) as turn,
        ):
            turn.intend([WANTED])
            other.execute(
                "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity"
                " WHERE datname = current_database() AND application_name = 'fairlead'"
            )

    with pytest.raises(StoreUnavailableError):
        be_cut_off()
    assert [plan.version for plan in store.approved_unpublished()] == [1]
    assert Outbox(store.engine).outstanding() == []


def test_senders_take_turns(store: PlanStore, approve: Plans) -> None:
    """Of four at once one intends the plan; the others find it on its way."""
    approve()
    start = threading.Barrier(4)

    def send(_: int) -> int:
        start.wait()
        return len(intend(store))

    with ThreadPoolExecutor(4) as pool:
        assert sorted(pool.map(send, range(4))) == [0, 0, 0, 1]


def test_partitions_do_not_hold_each_other_up(store: PlanStore, store_url: str) -> None:
    """Whoever hangs with one partition leaves the others alone."""
    with (
        Outbox(store.engine).turn("plans", 0),
        psycopg.connect(store_url) as other,
    ):
        other.execute("SET lock_timeout = '100ms'")
        other.execute("SELECT fairlead_raw.lock_partition('plans', 1)")
        with pytest.raises(psycopg.errors.LockNotAvailable):
            other.execute("SELECT fairlead_raw.lock_partition('plans', 0)")


def test_what_was_recorded_before_is_not_recorded_again(store: PlanStore, approve: Plans) -> None:
    """A sender that froze after sending finds that another one has finished for it."""
    approve()
    (intent,) = intend(store)
    outbox = Outbox(store.engine)
    outbox.confirm({"orders": (intent, sent(1))})
    outbox.confirm({"orders": (intent, sent(9))})
    outbox.discard({"orders": (intent, "too late")}, last_turn(store))
    assert store.get("orders", 1).record_offset == 1


@pytest.mark.parametrize("how", [Outbox.discard, Outbox.refuse])
def test_who_has_had_its_turn_cannot_say_what_was_not_sent(
    store: PlanStore, approve: Plans, how: Callable[..., None]
) -> None:
    """It looked, and froze; another one has sent the plan since, and not yet recorded it."""
    approve()
    (intent,) = intend(store)
    outbox, looked = Outbox(store.engine), last_turn(store)
    sent_since = last_turn(store)
    with pytest.raises(StoreUnavailableError, match="Lost plans-0 to another publisher"):
        how(outbox, {"orders": (intent, "it is not there")}, looked)
    assert store.get("orders", 1).state == "sending"
    how(outbox, {"orders": (intent, "it is not there")}, sent_since)
    assert store.get("orders", 1).state in {"stale", "refused"}


def test_a_refused_plan_ends_and_the_next_one_is_free(
    store: PlanStore, engine: Engine, approve: Plans, publish: Plans
) -> None:
    """The reason is in the event, for whoever asks; the group goes on."""
    approve("s1")
    (intent,) = intend(store)
    Outbox(engine).refuse({"orders": (intent, "too large")}, last_turn(store))
    assert store.get("orders", 1).state == "refused"
    with engine.connect() as connection:
        reason = connection.exec_driver_sql(
            "SELECT reason FROM fairlead.plan_event WHERE state = 'refused'"
        ).scalar_one()
    assert reason == "too large"
    assert publish("s2").state == "published"


def test_a_stale_plan_says_why(store: PlanStore, engine: Engine, approve: Plans) -> None:
    """The differences are in the event; whoever comes later finds nothing to do."""
    plan = approve()
    assert store.mark_stale(plan, reason="orders-3 joined")
    assert not store.mark_stale(plan, reason="orders-4 joined")
    with engine.connect() as connection:
        reason = connection.exec_driver_sql(
            "SELECT reason FROM fairlead.plan_event WHERE state = 'stale'"
        ).scalar_one()
    assert reason == "orders-3 joined"


def test_only_what_is_approved_is_sent(store: PlanStore, propose: Plans) -> None:
    """A proposed plan does not go out, whoever asks; the database refuses the step itself."""
    propose()
    assert intend(store) == []
    with pytest.raises(PlanStateError, match="cannot become sending"):
        send_by_hand(store)


def send_by_hand(store: PlanStore) -> None:
    with transaction(store.engine) as connection:
        record_events(
            connection,
            [{"group_id": "orders", "version": 1, "state": "sending", "reason": "by hand"}],
        )


def test_epochs_go_up_after_a_retirement_alone(store: PlanStore, approve: Plans) -> None:
    """Versions of one life share an epoch; what is told after it is over goes before all of it."""
    outbox, epochs = Outbox(store.engine), []
    told: list[tuple[int, Kind]] = [(1, "plan"), (2, "plan"), (2, "retired"), (3, "plan")]
    for version, kind in told:
        if kind == "plan":
            approve(f"s{version}")
        until = LEASE_UNTIL if kind == "plan" else None
        wanted = PublishRequest("orders", version, kind, lease_until=until, reason="enough")
        (intent,) = intend(store, wanted)
        at = replace(sent(lease_until=until), epoch=intent.epoch)
        outbox.confirm({"orders": (intent, at)})
        epochs.append(intent.epoch)
    assert epochs[0] == epochs[1] == epochs[2] < epochs[3]
