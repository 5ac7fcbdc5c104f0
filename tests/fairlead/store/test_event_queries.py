"""Queries for the events ("steps") of plans."""

import psycopg
import pytest

from fairlead.store.event_queries import read_steps
from fairlead.store.plans import PlanStore
from tests.fixtures.plans import MakeDraft
from tests.stored import record_decision

pytestmark = pytest.mark.postgres


def test_step_that_commits_after_later_ones_is_read_once(
    store: PlanStore, draft: MakeDraft, migrated: str
) -> None:
    """A step is read once, even if its transaction commits after later steps were read."""
    for group in ("slow", "quick"):
        record_decision(store, draft(group=group))
    _, cursor = read_steps(store.engine, None)
    with psycopg.connect(migrated) as slow:
        slow.execute("SELECT fairlead.approve_plan('slow', 1, 'at lunch')")
        store.reject("quick", 1, reason="at once")
        steps, cursor = read_steps(store.engine, cursor)
        assert [(step["group"], step["state"]) for step in steps] == [("quick", "rejected")]
        assert read_steps(store.engine, cursor)[0] == []
    steps, cursor = read_steps(store.engine, cursor)
    assert [(step["group"], step["state"]) for step in steps] == [("slow", "approved")]
    assert read_steps(store.engine, cursor)[0] == []


def test_end_of_a_replaced_version_is_no_step(store: PlanStore, draft: MakeDraft) -> None:
    """If a new version replaces a waiting one, no step says that the old version has expired."""
    record_decision(store, draft())
    record_decision(store, draft("s2"))
    assert [store.get("orders", version).state for version in (1, 2)] == ["expired", "proposed"]
    assert read_steps(store.engine, None)[0] == []


def test_foreign_cursor_starts_from_the_beginning(store: PlanStore, draft: MakeDraft) -> None:
    """If a cursor is invalid or from another database, all steps are read."""
    record_decision(store, draft())
    store.reject("orders", 1, reason="not today")
    for cursor in (None, "2026-01-31T12:00:00+00:00", "999999999:999999999:"):
        assert [step["state"] for step in read_steps(store.engine, cursor)[0]] == ["rejected"]
