"""Decisions are stored completely, once, and in gapless versions, despite crashes."""

import dataclasses
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import psycopg
import pytest
from sqlalchemy import Engine, text
from sqlalchemy.exc import IntegrityError

from fairlead.errors import StoreUnavailableError
from fairlead.store import NoPlan, PlanDraft, PlanStore, create_store_engine
from fairlead.store.engine import transaction
from fairlead.store.history_queries import read_candidates, read_decisions
from fairlead.wire.document import PlanDocument
from tests.docs.scenario import at
from tests.stored import record_decision

pytestmark = pytest.mark.postgres

MakeDraft = Callable[..., PlanDraft]
TABLES = ("decision", "candidate", "balance", "plan", "plan_event", "moved_partition")


def rows(engine: Engine, query: str) -> list[tuple[Any, ...]]:
    with transaction(engine) as connection:
        return [tuple(row) for row in connection.execute(text(query))]


def counts(engine: Engine) -> dict[str, int]:
    return {
        name: rows(engine, f"SELECT count(*) FROM fairlead_raw.{name}")[0][0] for name in TABLES
    }


def test_a_draft_becomes_a_proposed_version_with_its_document(
    store: PlanStore, draft: MakeDraft
) -> None:
    """The stored bytes are a document with the version, plan id and times of its row."""
    decision = record_decision(store, draft())
    plan = decision.plan
    assert plan is not None
    assert (decision.outcome, decision.created) == ("plan", True)
    assert (plan.group, plan.version, plan.state) == ("orders", 1, "proposed")
    document = plan.verify()
    assert (document.created_at, document.snapshot_at) == (plan.created_at, plan.snapshot_at)
    assert document.members["orders-2"].partitions["t0"].tolist() == [1, 2]


def test_a_decision_says_which_file_decided(engine: Engine, draft: MakeDraft) -> None:
    """Every decision has the source of the policies."""
    record_decision(PlanStore(engine, "fairlead.toml, SHA-256 0123456789ab"), draft())
    stored = rows(engine, "SELECT settings FROM fairlead.decision")
    assert stored == [("fairlead.toml, SHA-256 0123456789ab",)]


def test_everything_about_a_draft_is_stored(
    store: PlanStore, engine: Engine, draft: MakeDraft
) -> None:
    """Decision, candidates with their errors, both balances, moves, and the event."""
    record_decision(store, draft())
    assert rows(engine, "SELECT outcome, version, reason FROM fairlead.decision") == [
        ("plan", 1, "the most loaded member gets lighter")
    ]
    assert rows(
        engine, "SELECT assignor, lag_max, outcome, error FROM fairlead.candidate ORDER BY 1"
    ) == [("range", None, None, "it fell over"), ("sticky", 110_000, "balanced", None)]
    assert rows(
        engine, "SELECT kind, version, lag_max, moved FROM fairlead_raw.balance ORDER BY kind"
    ) == [("observed", None, 160_000, 0), ("predicted", 1, 110_000, 1)]
    assert rows(engine, "SELECT * FROM fairlead.plan_moves") == [
        (
            *("orders", 1, "proposed", "t0", 1),
            *("orders-1", "orders-2", 60_000.0, "orders-1 is the heaviest"),
        )
    ]
    assert rows(engine, "SELECT state, reason, actor = session_user FROM fairlead.plan_event") == [
        ("proposed", "the most loaded member gets lighter", True)
    ]


def test_candidates_are_read_back_as_they_were(
    engine: Engine, store: PlanStore, draft: MakeDraft
) -> None:
    """Metrics, the assignor's details, and the frontier; failed candidates come last."""
    decision = draft()
    record_decision(store, decision)
    assert read_candidates(engine, "orders", "s1") == list(decision.candidates)


def test_the_same_snapshot_again_stores_nothing(
    store: PlanStore, engine: Engine, draft: MakeDraft
) -> None:
    """A repeated run gets the stored result of the first one."""
    first = record_decision(store, draft("s1"))
    before = counts(engine)
    again = record_decision(store, draft("s1", assignor="range", reason="another idea"))
    assert again == dataclasses.replace(first, created=False)
    assert counts(engine) == before


def test_runs_at_once_leave_no_gap_and_no_duplicate(
    store_url: str, engine: Engine, draft: MakeDraft
) -> None:
    """Eight writers with separate pools, two groups, and every snapshot from two writers."""

    def write(writer: int) -> list[bool]:
        own = create_store_engine(store_url)
        try:
            return [
                record_decision(
                    PlanStore(own), draft(f"s{snapshot}", group=("orders", "billing")[writer % 2])
                ).created
                for snapshot in range(writer // 4, 20, 2)
            ]
        finally:
            own.dispose()

    with ThreadPoolExecutor(8) as pool:
        created = sum(map(sum, pool.map(write, range(8))))
    assert created == 40
    assert rows(
        engine,
        "SELECT group_id, count(*), min(version), max(version), count(DISTINCT snapshot_id)"
        " FROM fairlead.plan GROUP BY 1 ORDER BY 1",
    ) == [("billing", 20, 1, 20, 20), ("orders", 20, 1, 20, 20)]


class Killing(PlanDraft):
    """A draft in the middle of whose transaction Postgres ends every connection of the store."""

    def document(self, version: int, plan_id: UUID, created_at: datetime) -> PlanDocument:
        """End the connections, then go on as if nothing had happened."""
        with psycopg.connect(self.reason, autocommit=True) as other:
            ended = other.execute(
                "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity"
                " WHERE datname = current_database() AND application_name = 'fairlead'"
            ).fetchall()
            assert (True,) in ended
        return super().document(version, plan_id, created_at)


def test_a_connection_lost_in_the_middle_leaves_nothing(
    store: PlanStore, engine: Engine, store_url: str, draft: MakeDraft
) -> None:
    """The lost transaction had already ended the older plan, which is still proposed."""
    record_decision(store, draft("s1"))
    before = counts(engine)
    with pytest.raises(StoreUnavailableError):
        record_decision(store, draft("s2", kind=Killing, reason=store_url))
    assert counts(engine) == before
    assert store.get("orders", 1).state == "proposed"
    plan = record_decision(store, draft("s2")).plan
    assert plan is not None
    assert plan.version == 2


def test_a_move_to_the_same_member_is_refused(store: PlanStore, draft: MakeDraft) -> None:
    """Moves to the same owner would falsify the history."""
    moves = draft().moves
    still = moves.set_column(3, "member", moves["previous_member"])
    with pytest.raises(psycopg.errors.CheckViolation, match="moved_partition_moves_check"):
        record_decision(store, draft(moves=still))


def test_lag_beyond_64_bits_is_stored(
    store: PlanStore, engine: Engine, no_plan: NoPlan, metrics: Callable[..., dict[str, Any]]
) -> None:
    """A sum of int64 lags is no int64."""
    record_decision(store, dataclasses.replace(no_plan, observed=metrics(lag_max=2**64)))
    assert rows(engine, "SELECT lag_max FROM fairlead_raw.balance") == [(2**64,)]


def test_one_snapshot_has_one_observed_balance(
    engine: Engine, store: PlanStore, no_plan: NoPlan
) -> None:
    """The database itself refuses a second one."""
    record_decision(store, no_plan)
    with pytest.raises(IntegrityError), transaction(engine) as connection:
        connection.execute(
            text(
                "INSERT INTO fairlead_raw.balance (group_id, snapshot_id, kind, measured_at)"
                " VALUES ('orders', 's1', 'observed', :at)"
            ),
            {"at": datetime.now(UTC)},
        )


def test_newest_decision_of_each_group_after_a_moment(week: str) -> None:
    """With the present state of its plan; groups without a later decision are missing."""
    engine = create_store_engine(week)
    every = read_decisions(engine, None)
    assert [(row["group"], row["outcome"], row["version"], row["state"]) for row in every] == [
        ("billing", "plan", 1, "proposed"),
        ("orders", "plan", 3, "rejected"),
    ]
    assert [row["group"] for row in read_decisions(engine, at(2, 10))] == ["billing"]
    engine.dispose()
