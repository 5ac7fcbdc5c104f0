"""Common queries do not read whole tables, but use indexes or the table partition of a day."""

from collections.abc import Iterator
from typing import Any, LiteralString
from urllib.parse import urlsplit

import psycopg
import pytest
from psycopg import sql
from sqlalchemy import Engine, text

from fairlead.sandbox import Services
from fairlead.store.engine import create_store_engine, transaction
from fairlead.store.migrate import upgrade

pytestmark = pytest.mark.postgres

GROUPS, SNAPSHOTS, PARTITIONS = 20, 96, 25
FILL: LiteralString = f"""
INSERT INTO fairlead_raw.consumer_group (group_id)
SELECT 'g' || g FROM generate_series(1, {GROUPS}) g;

SELECT fairlead_raw.ensure_day('2026-01-01'::date + d) FROM generate_series(0, 3) d;

INSERT INTO fairlead_raw.lag_snapshot (group_id, snapshot_id, snapshot_at)
SELECT 'g' || g, 's' || s, '2026-01-01+00'::timestamptz + s * interval '1 hour'
FROM generate_series(1, {GROUPS}) g, generate_series(0, {SNAPSHOTS - 1}) s;

INSERT INTO fairlead_raw.partition_lag (group_id, snapshot_at, topic, partition, member, lag)
SELECT group_id, snapshot_at, 't', p, 'c' || p % 3, p
FROM fairlead_raw.lag_snapshot, generate_series(0, {PARTITIONS - 1}) p;

DO $$ BEGIN
    FOR v IN 1..50 LOOP
        INSERT INTO fairlead_raw.plan (group_id, version, plan_id, assignor, reason, snapshot_id,
            snapshot_at, created_at, document, sha256)
        SELECT group_id, v, gen_random_uuid(), 'sticky', '', 's' || v, now(), now(), 'plan',
            encode(sha256('plan'), 'hex')
        FROM fairlead_raw.consumer_group;
        INSERT INTO fairlead_raw.plan_event (group_id, version, state, reason)
        SELECT group_id, v, 'expired', 'never approved' FROM fairlead_raw.consumer_group;
    END LOOP;
END $$;

INSERT INTO fairlead_raw.moved_partition
    (group_id, version, topic, partition, previous_member, member)
SELECT group_id, version, 't', p, 'a', 'b' FROM fairlead.plan, generate_series(0, 19) p;

INSERT INTO fairlead_raw.balance (group_id, measured_at, kind, snapshot_id)
SELECT group_id, snapshot_at, 'observed', snapshot_id FROM fairlead_raw.lag_snapshot;

INSERT INTO fairlead_raw.balance (group_id, measured_at, kind, version, snapshot_id)
SELECT group_id, lag_snapshot.snapshot_at, 'predicted', version, snapshot_id
FROM fairlead_raw.lag_snapshot JOIN fairlead.plan USING (group_id, snapshot_id);

INSERT INTO fairlead_raw.plan_adoption (group_id, version, observed_at, planned, as_planned)
SELECT group_id, version, '2026-01-01+00'::timestamptz + version % 4 * interval '1 day'
    + n * interval '1 minute', 25, 20
FROM fairlead.plan, generate_series(1, 5) n;

INSERT INTO fairlead_raw.decision (group_id, snapshot_id, snapshot_at, decided_at, outcome, reason)
SELECT group_id, snapshot_id, snapshot_at, snapshot_at, 'no change', ''
FROM fairlead_raw.lag_snapshot;

INSERT INTO fairlead_raw.consumer_group (group_id)
SELECT 'other' || g FROM generate_series(1, 5000) g;

INSERT INTO fairlead_raw.plan_attempt (group_id, version, at, reason, again_at)
SELECT group_id, 1, now(), '', now() FROM fairlead_raw.consumer_group;
"""
QUESTIONS = {
    "lag of a group over an hour": (
        "SELECT * FROM fairlead.lag_history WHERE group_id = 'g7'"
        " AND snapshot_at >= '2026-01-02 03:00+00' AND snapshot_at < '2026-01-02 04:00+00'"
    ),
    "balance of a group": "SELECT * FROM fairlead.balance_history WHERE group_id = 'g7'",
    "adoption by a group": "SELECT * FROM fairlead.adoption WHERE group_id = 'g7'",
    "a version of a plan": (
        "SELECT * FROM fairlead.plan_history WHERE group_id = 'g7' AND version = 20"
    ),
    "moves of a version": (
        "SELECT * FROM fairlead.plan_moves WHERE group_id = 'g7' AND version = 20"
    ),
    "events of an hour": (
        "SELECT * FROM fairlead.plan_event WHERE at >= now() + interval '1 hour'"
    ),
    "decisions of a group in an hour": (
        "SELECT * FROM fairlead.decision WHERE group_id = 'g7'"
        " AND snapshot_at >= '2026-01-02 03:00+00' AND snapshot_at < '2026-01-02 04:00+00'"
    ),
    "the last decision on a group": "SELECT * FROM fairlead.last_decision WHERE group_id = 'g7'",
}


@pytest.fixture(scope="module")
def filled(services: Services) -> Iterator[Engine]:
    """Return an engine on a database with thousands of rows and up-to-date statistics."""
    name = sql.Identifier("test_explain")
    url = urlsplit(services.postgres_url)._replace(path="/test_explain").geturl()
    with psycopg.connect(services.postgres_url, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(name))
        upgrade(url)
        with psycopg.connect(url, autocommit=True) as filling:
            filling.execute(FILL)
            filling.execute("ANALYZE")
        engine = create_store_engine(url)
        yield engine
        engine.dispose()
        connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(name))


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield all nodes of a query plan."""
    yield plan
    for child in plan.get("Plans", ()):
        yield from nodes(child)


@pytest.mark.parametrize("question", QUESTIONS)
def test_query_uses_an_index(filled: Engine, question: str) -> None:
    """No query scans a table; a query about one hour reads only the table partition of the day."""
    with transaction(filled) as connection:
        explained = connection.execute(text(f"EXPLAIN (FORMAT JSON) {QUESTIONS[question]}"))
        (plan,) = explained.scalar_one()
    kinds, read = (
        {node.get(name, "") for node in nodes(plan["Plan"])}
        for name in ("Node Type", "Relation Name")
    )
    assert any("Index" in kind for kind in kinds)
    assert "Seq Scan" not in kinds, plan
    if question.startswith("lag"):
        assert {name for name in read if "partition_lag" in name} == {"partition_lag_20260102"}
