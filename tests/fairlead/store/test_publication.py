"""The outbox: locks of the plan topic's partitions, and epochs of plans."""

from collections.abc import Callable
from dataclasses import replace

import psycopg
import pytest

from fairlead.domain.records import StoredPlan
from fairlead.errors import StoreUnavailableError
from fairlead.store.outbox import Outbox, OutboxEntry, PartitionLock, PublishRequest
from fairlead.store.plans import PlanStore
from fairlead.wire.record import Kind
from tests.fixtures.plans import LEASE_UNTIL, sent

pytestmark = pytest.mark.postgres

Plans = Callable[..., StoredPlan]
WANTED = PublishRequest("orders", 1, lease_until=LEASE_UNTIL)


def add_entries(store: PlanStore, wanted: PublishRequest = WANTED) -> list[OutboxEntry]:
    with Outbox(store.engine).turn("plans", 0) as turn:
        return turn.add([wanted])


def last_turn(store: PlanStore) -> PartitionLock:
    """Take and release the lock of a partition; return the lock."""
    with Outbox(store.engine).turn("plans", 0) as turn:
        return turn.lock


def test_partitions_do_not_wait_for_each_other(store: PlanStore, migrated: str) -> None:
    """While one partition of the plan topic is locked, only the other partitions can be locked."""
    with Outbox(store.engine).turn("plans", 0), psycopg.connect(migrated) as other:
        other.execute("SET lock_timeout = '100ms'")
        other.execute("SELECT fairlead_raw.lock_partition('plans', 1)")
        with pytest.raises(psycopg.errors.LockNotAvailable):
            other.execute("SELECT fairlead_raw.lock_partition('plans', 0)")


@pytest.mark.parametrize("how", [Outbox.discard, Outbox.refuse])
def test_publisher_that_lost_its_lock_cannot_record_a_failure(
    store: PlanStore, approve: Plans, how: Callable[..., None]
) -> None:
    """A publisher cannot mark a plan as failed if another publisher has had the lock meanwhile."""
    approve()
    (entry,) = add_entries(store)
    outbox, lost = Outbox(store.engine), last_turn(store)
    sent_since = last_turn(store)
    with pytest.raises(StoreUnavailableError, match="Lost plans-0 to another publisher"):
        how(outbox, {"orders": (entry, "it is not there")}, lost)
    assert store.get("orders", 1).state == "sending"
    how(outbox, {"orders": (entry, "it is not there")}, sent_since)
    assert store.get("orders", 1).state in {"stale", "refused"}


def test_epoch_increases_only_after_a_withdrawal(store: PlanStore, approve: Plans) -> None:
    """All versions have the same epoch until a withdrawal; then the epoch increases."""
    outbox, epochs = Outbox(store.engine), []
    records: list[tuple[int, Kind]] = [(1, "plan"), (2, "plan"), (2, "withdrawn"), (3, "plan")]
    for version, kind in records:
        if kind == "plan":
            approve(f"s{version}")
        until = LEASE_UNTIL if kind == "plan" else None
        wanted = PublishRequest("orders", version, kind, lease_until=until, reason="enough")
        (entry,) = add_entries(store, wanted)
        at = replace(sent(lease_until=until), epoch=entry.epoch)
        outbox.confirm({"orders": (entry, at)})
        epochs.append(entry.epoch)
    assert epochs[0] == epochs[1] == epochs[2] < epochs[3]
