"""What is stored survives every migration, from each revision to the newest and step by step back.

A new revision is covered as soon as it exists. Tables go by their bare names: a revision may move
them.
"""

from collections.abc import Iterator

import pytest
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, make_url, text

from fairlead.store import create_store_engine, migrate
from fairlead.store.engine import transaction

pytestmark = pytest.mark.postgres

SCRIPTS = ScriptDirectory(str(migrate.MIGRATIONS))
REVISIONS = [script.revision for script in SCRIPTS.walk_revisions()][::-1]
#: The revision from which a plan is on its way before it is published.
OUTBOX = "0010"
#: The revision from which every history has days.
BY_DAY = "0013"
ON_ITS_WAY = """
INSERT INTO plan_event (group_id, version, state, reason)
VALUES ('g', 1, 'sending', 'on its way');
"""
# A row in every table, in terms of the first revision.
ROWS = """
INSERT INTO consumer_group (group_id) VALUES ('g');

INSERT INTO plan (group_id, version, plan_id, assignor, reason, snapshot_id, snapshot_at,
    created_at, document, sha256)
VALUES ('g', 1, gen_random_uuid(), 'sticky', 'why', 's0', '2026-01-31+00', '2026-01-31+00',
    'plan', encode(sha256('plan'), 'hex'));

INSERT INTO plan_event (group_id, version, state, reason, actor)
VALUES ('g', 1, 'approved', 'few moves', 'kim');

ON_ITS_WAY_HERE

INSERT INTO plan_event (group_id, version, state, reason, topic, partition, record_offset)
VALUES ('g', 1, 'published', 'sent', 'fairlead.plans', 0, 17);

INSERT INTO plan_move (group_id, version, topic, partition, member, weight)
VALUES ('g', 1, 't', 0, 'c0', 2.5);

INSERT INTO decision (group_id, snapshot_id, snapshot_at, outcome, reason, version)
VALUES ('g', 's0', '2026-01-31+00', 'plan', 'why', 1);

CANDIDATES_HERE

INSERT INTO balance (group_id, measured_at, kind, version, snapshot_id, lag_max)
VALUES ('g', '2026-01-31+00', 'observed', NULL, 's0', 3),
    ('g', '2026-01-31+00', 'predicted', 1, 's0', 2), ('g', '2026-02-01+00', 'achieved', 1, 's1', 2);

INSERT INTO plan_adoption (group_id, version, observed_at, planned, as_planned)
VALUES ('g', 1, '2026-02-01+00', 3, 2);

INSERT INTO lag_snapshot (group_id, snapshot_id, snapshot_at)
SELECT 'g', 's' || n, '2026-01-31 22:30+00'::timestamptz + n * interval '1 hour'
FROM generate_series(0, 3) n;

INSERT INTO partition_lag (group_id, snapshot_at, topic, partition, lag, arrival_rate)
SELECT group_id, snapshot_at, 't', p, 10 * p, p / 3.0::float8
FROM lag_snapshot, generate_series(0, 2) p;
"""
CANDIDATES = """
INSERT INTO candidate (group_id, snapshot_id, assignor, lag_max, gap)
VALUES ('g', 's0', 'sticky', 12345678901234567890, 0.5);
"""
CANDIDATES_BY_DAY = """
INSERT INTO candidate (group_id, snapshot_id, snapshot_at, assignor, lag_max, gap)
VALUES ('g', 's0', '2026-01-31+00', 'sticky', 12345678901234567890, 0.5);
"""
LAG_DAYS = "SELECT ensure_lag_day('2026-01-31'), ensure_lag_day('2026-02-01')"
DAYS = "SELECT ensure_day('2026-01-31'), ensure_day('2026-02-01')"
COLUMNS = """
    SELECT relname AS table, array_agg(quote_ident(attname) ORDER BY attnum) AS names
    FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid
    WHERE relnamespace = 'fairlead'::regnamespace AND relkind = 'r' AND attnum > 0
        AND relname <> 'alembic_version'
    GROUP BY relname
"""


#: Where tables were, and are.
SEARCHED = "-csearch_path=fairlead_raw,fairlead"
RENAMED = {"plan_move": "moved_partition"}


@pytest.fixture
def engine(database: str) -> Iterator[Engine]:
    """Return an engine on an empty database."""
    searched = make_url(database).update_query_dict({"options": SEARCHED})
    engine = create_store_engine(searched.render_as_string(hide_password=False))
    yield engine
    engine.dispose()


def name_of(connection: Connection, table: str) -> str:
    """Return what a table of the first revision is called at the present one."""
    found = connection.scalar(text("SELECT to_regclass(:name)::text"), {"name": table})
    return found or RENAMED[table]


@pytest.mark.parametrize("revision", REVISIONS)
def test_rows_survive_the_way_up_and_down(database: str, engine: Engine, revision: str) -> None:
    """Whatever the first revision can hold is the same at the newest, and at all in between."""
    migrate.upgrade(database, REVISIONS[0])
    with transaction(engine) as connection:
        columns = {row.table: row.names for row in connection.execute(text(COLUMNS))}
    columns["balance"].remove("id")  # it says nothing, and is drawn anew on the way back
    migrate.upgrade(database, revision)
    with transaction(engine) as connection:
        if revision != REVISIONS[0]:
            connection.execute(text(DAYS if revision >= BY_DAY else LAG_DAYS))
        rows = ROWS.replace("ON_ITS_WAY_HERE", ON_ITS_WAY if revision >= OUTBOX else "")
        by_day = revision >= BY_DAY
        rows = rows.replace("CANDIDATES_HERE", CANDIDATES_BY_DAY if by_day else CANDIDATES)
        for table in RENAMED:
            rows = rows.replace(table, name_of(connection, table))
        connection.execute(text(rows))

    def stored() -> dict[str, list[str]]:
        with transaction(engine) as connection:
            return {
                table: sorted(
                    connection.scalars(
                        text(f"SELECT ({', '.join(names)})::text FROM {name_of(connection, table)}")
                    )
                )
                for table, names in columns.items()
            }

    before = stored()
    assert all(before.values())
    migrate.upgrade(database)
    migrate.check(database)
    assert stored() == before
    for older in REVISIONS[-2::-1]:
        migrate.downgrade(database, "-1")
        assert migrate.current(database) == older
        assert stored() == before
    migrate.upgrade(database)
    assert stored() == before
