"""Decisions are stored completely, and read back unchanged."""

import dataclasses
from typing import Any

import pytest
from sqlalchemy import Engine, text

from fairlead.domain.records import Decision
from fairlead.store.engine import transaction
from fairlead.store.history_queries import read_candidates
from fairlead.store.plans import PlanStore
from tests.fixtures.plans import MakeDraft, make_metrics
from tests.stored import record_decision

pytestmark = pytest.mark.postgres


def rows(engine: Engine, query: str) -> list[tuple[Any, ...]]:
    with transaction(engine) as connection:
        return [tuple(row) for row in connection.execute(text(query))]


def test_decision_has_the_source_of_its_policies(engine: Engine, draft: MakeDraft) -> None:
    """A decision stores the name and hash of the file with the policies."""
    record_decision(PlanStore(engine, "fairlead.toml, SHA-256 0123456789ab"), draft())
    stored = rows(engine, "SELECT settings FROM fairlead.decision")
    assert stored == [("fairlead.toml, SHA-256 0123456789ab",)]


def test_candidates_are_read_back_unchanged(
    engine: Engine, store: PlanStore, draft: MakeDraft
) -> None:
    """Candidates are read back with the same metrics, details and order."""
    decision = draft()
    record_decision(store, decision)
    assert read_candidates(engine, "orders", "s1") == list(decision.candidates)


def test_lag_beyond_64_bits_is_stored(store: PlanStore, engine: Engine, no_plan: Decision) -> None:
    """A sum of lags can exceed int64, and is stored exactly."""
    record_decision(store, dataclasses.replace(no_plan, observed=make_metrics(lag_max=2**64)))
    assert rows(engine, "SELECT lag_max FROM fairlead_raw.balance") == [(2**64,)]
