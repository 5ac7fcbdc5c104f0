"""Freezes: which plans wait, who may end a freeze, and freezes during a publication."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from sqlalchemy import Engine, func, insert, select, text

from fairlead.domain.records import StoredPlan
from fairlead.errors import ConfigurationError, PlanStateError
from fairlead.store.attempts import Attempt, record_attempts
from fairlead.store.engine import create_store_engine, transaction
from fairlead.store.freezes import freeze_plans, read_freezes, unfreeze_plans
from fairlead.store.history_queries import read_groups
from fairlead.store.models.plan import OutboxRow
from fairlead.store.outbox import HANGS, Outbox, OutboxEntry
from fairlead.store.outbox_entries import PublishRequest
from fairlead.store.plans import PlanStore
from fairlead.surfaces.next_step import next_step
from tests.fixtures.plans import LEASE_UNTIL, StoreAs, sent
from tests.logins import Login
from tests.stored import a_session_waits
from tests.waiting import PATIENCE_S, eventually

pytestmark = pytest.mark.postgres

Plans = Callable[..., StoredPlan]
EVERYTHING = pytest.mark.parametrize("group", ["orders", None], ids=["its own", "of all"])


def add_entries(store: PlanStore, version: int = 1) -> list[OutboxEntry]:
    """Record that a version is about to be sent; return its entry, or [] during a freeze."""
    return add_all(store, [PublishRequest("orders", version, lease_until=LEASE_UNTIL)])


def add_all(store: PlanStore, wanted: Sequence[PublishRequest]) -> list[OutboxEntry]:
    with Outbox(store.engine).turn("plans", 0) as turn:
        return turn.add(wanted)


def by_hand(engine: Engine) -> None:
    """Record that a plan is about to be sent, without the planner's own check for freezes."""
    row = {"group_id": "orders", "kind": "plan", "version": 1, "epoch": 1}
    with transaction(engine) as connection:
        connection.execute(insert(OutboxRow), [row | {"lease_until": LEASE_UNTIL}])


@EVERYTHING
def test_approved_plan_waits_until_the_unfreeze(
    store: PlanStore, approve: Plans, group: str | None
) -> None:
    """An approved plan is sent only after the freeze of its group, or of all groups, has ended."""
    approve()
    freeze_plans(store.engine, group, reason="incident", actor="kim")
    assert [(freeze.group, freeze.reason) for freeze in read_freezes(store.engine)] == [
        (group, "incident")
    ]
    assert add_entries(store) == add_entries(store) == []
    assert store.get("orders", 1).state == "approved"
    with pytest.raises(PlanStateError, match="version 1 is not sent: frozen by kim since"):
        by_hand(store.engine)
    unfreeze_plans(store.engine, group, reason="it is over")
    assert read_freezes(store.engine) == []
    assert [entry.plan.version for entry in add_entries(store)] == [1]


def test_group_and_global_freezes_end_separately(store: PlanStore, approve: Plans) -> None:
    """Unfreezing all groups does not end the freeze of a single group."""
    approve()
    freeze_plans(store.engine, "orders", reason="its own")
    freeze_plans(store.engine, None, reason="all")
    unfreeze_plans(store.engine, None, reason="over")
    assert add_entries(store) == []
    unfreeze_plans(store.engine, "orders", reason="over, too")
    assert len(add_entries(store)) == 1


@EVERYTHING
def test_next_step_of_a_group_respects_its_freeze(
    store: PlanStore, propose: Plans, publish: Plans, approve: Plans, group: str | None
) -> None:
    """During a freeze, the next step shown for an approved new version is to wait.

    A proposed version still needs a decision, and an approved rollback is sent despite the freeze.
    """

    def says() -> str:
        (row,) = read_groups(store.engine, ["orders"])
        return next_step(row, (), ())

    publish()
    propose("s2")
    freeze_plans(store.engine, group, reason="incident")
    assert says() == "decide"
    approve("s2")
    assert says() == "wait: frozen"
    unfreeze_plans(store.engine, group, reason="over")
    assert says() == "wait: being sent"
    approve("s3", rolled_back_from=1)
    freeze_plans(store.engine, group, reason="incident")
    assert says() == "wait: being sent"
    assert len(add_entries(store, version=3)) == 1


@EVERYTHING
def test_work_during_a_freeze(
    store: PlanStore, publish: Plans, approve: Plans, group: str | None
) -> None:
    """A freeze stops neither a plan already being sent, nor leases, rollbacks and withdrawals."""
    publish()
    approve("s2")
    (on_its_way,) = add_entries(store, version=2)
    freeze_plans(store.engine, group, reason="incident")
    Outbox(store.engine).confirm({"orders": (on_its_way, sent(2))})
    assert store.get("orders", 2).state == "published"
    (again,) = add_entries(store, version=2)
    assert again.again
    approve("s3", rolled_back_from=1)
    (back,) = add_entries(store, version=3)
    Outbox(store.engine).confirm({"orders": (back, sent(3))})
    with Outbox(store.engine).turn("plans", 0) as turn:
        (withdrawn,) = turn.add([PublishRequest("orders", 3, "withdrawn", reason="enough")])
    assert withdrawn.kind == "withdrawn"


@EVERYTHING
def test_transaction_with_an_old_snapshot_sends_nothing(
    store: PlanStore, approve: Plans, group: str | None
) -> None:
    """A REPEATABLE READ transaction, which does not see a newer freeze, cannot send."""
    approve()
    past = store.engine.execution_options(isolation_level="REPEATABLE READ")
    row = {"group_id": "orders", "kind": "plan", "version": 1, "epoch": 1}

    def send() -> None:
        with transaction(past) as connection:
            connection.execute(select(OutboxRow)).all()
            freeze_plans(store.engine, group, reason="incident")
            connection.execute(insert(OutboxRow), [row | {"lease_until": LEASE_UNTIL}])

    with pytest.raises(ConfigurationError, match="READ COMMITTED"):
        send()


def test_default_isolation_level_changes_no_transaction(approve: Plans, migrated: str) -> None:
    """Plans can be sent even if the server's default isolation level is serializable."""
    approve()
    serializable = "options=-cdefault_transaction_isolation%3Dserializable"
    engine = create_store_engine(f"{migrated}&{serializable}")
    assert [entry.plan.version for entry in add_entries(PlanStore(engine))] == [1]
    engine.dispose()


@EVERYTHING
def test_freeze_waits_for_uncommitted_entries(
    store: PlanStore, approve: Plans, migrated: str, group: str | None
) -> None:
    """If a transaction is about to send a plan, a freeze waits until the transaction ends."""
    approve()
    with ThreadPoolExecutor(1) as pool:
        with Outbox(store.engine).turn("plans", 0) as turn:
            assert len(turn.add([PublishRequest("orders", 1, lease_until=LEASE_UNTIL)])) == 1
            freezing = pool.submit(freeze_plans, store.engine, group, reason="incident")
            eventually(lambda: a_session_waits(migrated), "the freeze waits")
            assert not freezing.done()
        freezing.result(PATIENCE_S)
    assert store.get("orders", 1).state == "sending"


@pytest.mark.parametrize("function", ["freeze", "act_as"])
def test_freeze_outlasts_a_sender_that_hangs(store: PlanStore, function: str) -> None:
    """A freeze waits longer than the time after which Postgres ends a sender's idle transaction."""
    longer = text(
        "SELECT split_part(setting, '=', 2)::interval > CAST(:hangs AS interval)"
        " FROM pg_proc, unnest(proconfig) setting"
        " WHERE oid = CAST(:function AS regproc) AND setting LIKE 'lock_timeout=%'"
    )
    given = {"hangs": HANGS, "function": f"fairlead.{function}"}
    with transaction(store.engine) as connection:
        assert connection.scalars(longer, given).all() == [True]


@EVERYTHING
@pytest.mark.usefixtures("long_locks")
def test_entry_waits_for_an_uncommitted_freeze(
    store: PlanStore, approve: Plans, migrated: str, group: str | None
) -> None:
    """A sender waits until another transaction has committed a freeze, and then sends nothing."""
    approve()
    with ThreadPoolExecutor(1) as pool:
        with transaction(store.engine) as connection:
            connection.execute(select(func.fairlead.freeze(group, "incident", None)))
            sending = pool.submit(add_entries, store)
            eventually(lambda: a_session_waits(migrated), "the sender waits")
            assert not sending.done()
        assert sending.result(PATIENCE_S) == []
    assert store.get("orders", 1).state == "approved"


@pytest.mark.parametrize("step", ["freeze", "unfreeze"])
def test_open_global_freeze_delays_no_lease_renewal(
    store: PlanStore, publish: Plans, approve: Plans, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """While a freeze or unfreeze of all groups is uncommitted, leases are renewed."""
    monkeypatch.setattr("fairlead.store.outbox.PATIENCE", timedelta(seconds=0.3))
    plan = publish()
    approve("s2", group="billing")
    at = plan.created_at
    record_attempts(store.engine, [Attempt("orders", 1, at, "why", at)])
    if step == "unfreeze":
        freeze_plans(store.engine, None, reason="incident")
    with transaction(store.engine) as connection:
        connection.execute(select(getattr(func.fairlead, step)(None, "at lunch", None)))
        connection.exec_driver_sql("SET LOCAL idle_in_transaction_session_timeout = 0")
        wanted = [
            PublishRequest(group, 1, lease_until=LEASE_UNTIL) for group in ("orders", "billing")
        ]
        with ThreadPoolExecutor(1) as pool:
            (again,) = pool.submit(add_all, store, wanted).result(PATIENCE_S)
            assert (again.group, again.again) == ("orders", True)
            confirming = pool.submit(Outbox(store.engine).confirm, {"orders": (again, sent(2))})
            confirming.result(PATIENCE_S)
        (standing,) = Outbox(store.engine).standing(["orders"])
        assert standing.record == sent(2)
    assert len(add_all(store, wanted)) == (1 if step == "freeze" else 2)


def test_only_an_approver_unfreezes_under_four_eyes(
    approve: Plans, propose: Plans, login: Login, store_as: StoreAs
) -> None:
    """If a group needs four eyes, planners may freeze it, but only approvers may unfreeze it."""
    planner = store_as(login("fairlead_planner")).engine
    approver = store_as(login("fairlead_approver")).engine
    reader = store_as(login("fairlead_reader")).engine
    propose(four_eyes="database")
    for group in ("orders", None):
        freeze_plans(planner, group, reason="a planner may freeze")
        with pytest.raises(PlanStateError, match="member of fairlead_planner and cannot unfreeze"):
            unfreeze_plans(planner, group, reason="and not release")
        unfreeze_plans(approver, group, reason="an approver may")
        freeze_plans(approver, group, reason="and freeze")
        with pytest.raises(ConfigurationError, match="permission denied"):
            unfreeze_plans(reader, group, reason="a reader may nothing")
        unfreeze_plans(approver, group, reason="over")
    approve("s2", group="billing")
    freeze_plans(planner, "billing", reason="without four eyes")
    unfreeze_plans(planner, "billing", reason="a planner may release, too")


def test_invalid_freezes_are_refused(store: PlanStore, propose: Plans) -> None:
    """A freeze needs a known group and a reason of limited length; its events cannot be deleted.

    An unfreeze without a freeze is refused.
    """
    propose()
    with pytest.raises(PlanStateError, match="group ordrs is not known"):
        freeze_plans(store.engine, "ordrs", reason="mistyped")
    with pytest.raises(PlanStateError, match="a reason is required"):
        freeze_plans(store.engine, "orders", reason="\u200b ")
    with pytest.raises(PlanStateError, match="2,000 characters at most"):
        freeze_plans(store.engine, "orders", reason="x" * 2001)
    with pytest.raises(PlanStateError, match="all groups: not frozen"):
        unfreeze_plans(store.engine, None, reason="nothing")
    freeze_plans(store.engine, "orders", reason="why")
    with (
        pytest.raises(PlanStateError, match="never changed"),
        transaction(store.engine) as connection,
    ):
        connection.exec_driver_sql("DELETE FROM fairlead_raw.freeze_event")
