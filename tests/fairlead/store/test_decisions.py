"""Decisions are stored and read back completely."""

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import Engine, text

from fairlead.store import NoPlan, PlanDraft, PlanStore, create_store_engine
from fairlead.store.engine import transaction
from fairlead.store.history_queries import read_candidates, read_decisions
from tests.docs.scenario import at
from tests.stored import record_decision

pytestmark = pytest.mark.postgres

MakeDraft = Callable[..., PlanDraft]


def rows(engine: Engine, query: str) -> list[tuple[Any, ...]]:
    with transaction(engine) as connection:
        return [tuple(row) for row in connection.execute(text(query))]


def test_a_decision_says_which_file_decided(engine: Engine, draft: MakeDraft) -> None:
    """Each decision records which settings file its policies come from."""
    record_decision(PlanStore(engine, "fairlead.toml, SHA-256 0123456789ab"), draft())
    stored = rows(engine, "SELECT settings FROM fairlead.decision")
    assert stored == [("fairlead.toml, SHA-256 0123456789ab",)]


def test_everything_about_a_draft_is_stored(
    store: PlanStore, engine: Engine, draft: MakeDraft
) -> None:
    """A draft is stored with its candidates, balances, moves and first event."""
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
    """Candidates are read back with metrics, outcome, frontier and error, and failed ones last."""
    decision = draft()
    record_decision(store, decision)
    assert read_candidates(engine, "orders", "s1") == list(decision.candidates)


def test_lag_beyond_64_bits_is_stored(
    store: PlanStore, engine: Engine, no_plan: NoPlan, metrics: Callable[..., dict[str, Any]]
) -> None:
    """A maximum lag beyond 64 bits is stored, since a sum of lags can exceed int64."""
    record_decision(store, dataclasses.replace(no_plan, observed=metrics(lag_max=2**64)))
    assert rows(engine, "SELECT lag_max FROM fairlead_raw.balance") == [(2**64,)]


def test_newest_decision_of_each_group_after_a_moment(week: str) -> None:
    """The newest decision of each group after a given time is read with its plan's state."""
    engine = create_store_engine(week)
    every = read_decisions(engine, None)
    assert [(row["group"], row["outcome"], row["version"], row["state"]) for row in every] == [
        ("billing", "plan", 1, "proposed"),
        ("orders", "plan", 3, "rejected"),
    ]
    assert [row["group"] for row in read_decisions(engine, at(2, 10))] == ["billing"]
    engine.dispose()
