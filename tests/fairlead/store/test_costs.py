"""A run uses only rows of its own groups; more groups need no more SQL statements."""

import dataclasses
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import Engine, event, text

from fairlead.domain.records import Decision, SeenAdoption, StoredPlan
from fairlead.store.engine import transaction
from fairlead.store.plans import PlanStore
from tests.fixtures.plans import SNAPSHOT_AT, MakeDraft
from tests.stored import record_decision

pytestmark = pytest.mark.postgres

GROUPS = [f"g{number}" for number in range(12)]


@contextmanager
def counted(engine: Engine) -> Iterator[list[int]]:
    """Yield a list that collects, for each statement, the number of rows read or written."""
    rows: list[int] = []

    def note(_connection: Any, cursor: Any, *_: Any) -> None:
        rows.append(cursor.rowcount)

    event.listen(engine, "after_cursor_execute", note)
    try:
        yield rows
    finally:
        event.remove(engine, "after_cursor_execute", note)


@pytest.fixture
def plans(publish: Callable[..., StoredPlan], propose: Callable[..., StoredPlan]) -> None:
    """Give each group a published version and a proposed one."""
    for group in GROUPS:
        publish("s1", group=group)
        propose("s2", group=group, snapshot_at=SNAPSHOT_AT + timedelta(minutes=15))


@pytest.mark.usefixtures("plans")
def test_a_run_of_one_group_reads_and_writes_rows_of_one_group(
    store: PlanStore, engine: Engine, draft: MakeDraft
) -> None:
    """A run for one of twelve groups neither reads nor writes rows of the others."""
    group = GROUPS[:1]
    with counted(engine) as rows:
        (published,) = store.in_state("published", groups=group)
        assert list(store.waiting(group)) == group
        assert list(store.memories(group).changes) == group
        assert len(store.predicted([published])) == 1
        assert store.unobserved([published])
        assert store.outbox().outstanding(group) == []
        assert len(store.outbox().standing(group)) == 1
        at = SNAPSHOT_AT + timedelta(minutes=30)
        record_decision(store, draft("s3", group=group[0], snapshot_at=at))
    assert rows
    assert max(rows) <= 3  # a decision is stored with two rows of metrics, and two of candidates


def test_no_pending_entry_needs_no_query_of_plans(store: PlanStore, engine: Engine) -> None:
    """If nothing waits to be sent, the outbox runs a single query."""
    with counted(engine) as rows:
        assert store.outbox().outstanding() == []
    assert len(rows) == 1


@pytest.mark.usefixtures("plans")
def test_many_groups_take_as_many_statements_as_one(
    store: PlanStore, engine: Engine, no_plan: Decision
) -> None:
    """For 12 groups, a run needs as many statements as for one group."""

    def run(groups: list[str], minute: int) -> int:
        at = SNAPSHOT_AT + timedelta(hours=1, minutes=minute)
        decisions = [
            dataclasses.replace(no_plan, group=group, snapshot_id=f"m{minute}", snapshot_at=at)
            for group in groups
        ]
        seen = [
            SeenAdoption(group=group, version=1, observed_at=at, planned=3, as_planned=3)
            for group in groups
        ]
        with counted(engine) as rows:
            store.record_decisions(decisions)
            store.record_adoptions(seen)
            store.leases_ending_by(datetime(2200, 1, 1, tzinfo=UTC))
        return len(rows)

    assert run(GROUPS[:1], 1) == run(GROUPS, 2)
    with transaction(engine) as connection:
        stored = connection.scalar(text("SELECT count(*) FROM fairlead_raw.last_adoption"))
    assert stored == len(GROUPS)
