"""Decisions are stored completely, and read back unchanged."""

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import Engine, text

from fairlead.domain.records import Decision, PlanDraft
from fairlead.store.engine import create_store_engine, transaction
from fairlead.store.history_queries import read_candidates, read_decisions
from fairlead.store.plans import PlanStore
from tests.docs.scenario import at
from tests.stored import record_decision

pytestmark = pytest.mark.postgres

MakeDraft = Callable[..., PlanDraft]


def rows(engine: Engine, query: str) -> list[tuple[Any, ...]]:
    with transaction(engine) as connection:
        return [tuple(row) for row in connection.execute(text(query))]


def test_decision_has_the_source_of_its_policies(engine: Engine, draft: MakeDraft) -> None:
    """The source is the file of the policies."""
    record_decision(PlanStore(engine, "fairlead.toml, SHA-256 0123456789ab"), draft())
    stored = rows(engine, "SELECT settings FROM fairlead.decision")
    assert stored == [("fairlead.toml, SHA-256 0123456789ab",)]


def test_candidates_are_read_back_unchanged(
    engine: Engine, store: PlanStore, draft: MakeDraft
) -> None:
    """Candidates have metrics, the assignor's details; failed ones are last."""
    decision = draft()
    record_decision(store, decision)
    assert read_candidates(engine, "orders", "s1") == list(decision.candidates)


def test_lag_beyond_64_bits_is_stored(
    store: PlanStore, engine: Engine, no_plan: Decision, metrics: Callable[..., dict[str, Any]]
) -> None:
    """A maximum lag beyond 64 bits is stored, since a sum of lags can exceed int64."""
    record_decision(store, dataclasses.replace(no_plan, observed=metrics(lag_max=2**64)))
    assert rows(engine, "SELECT lag_max FROM fairlead_raw.balance") == [(2**64,)]


def test_newest_decision_of_each_group_after_a_moment(week: str) -> None:
    """The row has the present state of the plan; groups without a later decision are missing."""
    engine = create_store_engine(week)
    every = read_decisions(engine, None)
    assert [(row["group"], row["outcome"], row["version"], row["state"]) for row in every] == [
        ("billing", "plan", 1, "proposed"),
        ("orders", "plan", 3, "rejected"),
    ]
    assert [row["group"] for row in read_decisions(engine, at(2, 10))] == ["billing"]
    engine.dispose()
