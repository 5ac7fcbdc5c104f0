"""Upgrades to an invented next revision, and databases of other builds of Fairlead."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine, make_url, text

from fairlead.errors import ConfigurationError
from fairlead.store import migrate, models
from fairlead.store.engine import create_store_engine, transaction

NEXT = """
import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "{head}"


def upgrade():
    priority = sa.Column("priority", sa.Integer(), server_default="7", nullable=False)
    op.add_column("plan", priority, schema="fairlead_raw")
    op.execute("CREATE OR REPLACE VIEW fairlead.plan AS SELECT * FROM fairlead_raw.plan")
"""
# SQL that inserts at least one row into every table, in part by triggers.
ROWS = """
SELECT ensure_day('2026-01-31'), ensure_day('2026-02-01');

INSERT INTO consumer_group (group_id) VALUES ('g');

INSERT INTO four_eyes (groups) VALUES ('payments*');

INSERT INTO plan (group_id, version, plan_id, assignor, reason, snapshot_id, snapshot_at,
    created_at, document, sha256)
VALUES ('g', 1, gen_random_uuid(), 'sticky', 'why', 's0', '2026-01-31+00', '2026-01-31+00',
    'plan', encode(sha256('plan'), 'hex'));

INSERT INTO plan_event (group_id, version, state, reason, actor)
VALUES ('g', 1, 'approved', 'few moves', 'kim');

INSERT INTO plan_intent (group_id, kind, version, epoch) VALUES ('g', 'plan', 1, 1);

INSERT INTO plan_event (group_id, version, state, reason) VALUES ('g', 1, 'sending', 'on its way');

SELECT lock_partition('fairlead.plans', 0);

INSERT INTO plan_event (group_id, version, state, reason, topic, partition, record_offset)
VALUES ('g', 1, 'published', 'sent', 'fairlead.plans', 0, 17);

INSERT INTO plan_record (group_id, kind, version, epoch, lease_until, topic, partition,
    record_offset)
VALUES ('g', 'plan', 1, 1, '2026-02-01+00', 'fairlead.plans', 0, 17);

INSERT INTO plan_attempt (group_id, version, at, reason, again_at)
VALUES ('g', 1, '2026-01-31+00', 'rebalancing', '2026-01-31+00');

INSERT INTO freeze_event (group_id, frozen, at, reason, actor, database_user)
VALUES ('g', true, '2026-01-31+00', 'incident', 'kim', 'postgres');

INSERT INTO page_act (id, at, actor, proof, act, group_id, reason, database_user, outcome)
VALUES (gen_random_uuid(), '2026-01-31+00', 'kim', 'token 1', 'freeze', 'g', 'incident', 'web',
    'done');

INSERT INTO regression (group_id, version, at, evidence, automatic, back_off_until)
VALUES ('g', 1, '2026-01-31+00', 'late', true, '2026-02-01+00');

INSERT INTO plan_pruned (group_id, versions) VALUES ('h', 3);

INSERT INTO moved_partition (group_id, version, topic, partition, member, weight)
VALUES ('g', 1, 't', 0, 'c0', 2.5);

INSERT INTO decision (group_id, snapshot_id, snapshot_at, outcome, reason, version)
VALUES ('g', 's0', '2026-01-31+00', 'plan', 'why', 1);

INSERT INTO candidate (group_id, snapshot_id, snapshot_at, assignor, lag_max, gap)
VALUES ('g', 's0', '2026-01-31+00', 'sticky', 12345678901234567890, 0.5);

INSERT INTO balance (group_id, measured_at, kind, version, snapshot_id, lag_max)
VALUES ('g', '2026-01-31+00', 'observed', NULL, 's0', 3),
    ('g', '2026-01-31+00', 'predicted', 1, 's0', 2);

INSERT INTO plan_adoption (group_id, version, observed_at, planned, as_planned)
VALUES ('g', 1, '2026-02-01+00', 3, 2);

INSERT INTO group_sample (group_id, sampled_at, digest, forecast_time_lag_s, group_type, protocol,
    topics, counts, members, owner, lag, arrival_rate, behind_s, capacity_share)
VALUES ('g', '2026-02-01+00', 7, 1.5, 'classic', 'range', '{t}', '{2}', '{c0}', '{0,-1}', '{5,6.5}',
    '{1,0.25}', '{3,9}', '{0.125,NaN}');

INSERT INTO group_sample_last SELECT * FROM group_sample;

INSERT INTO last_sample (single, sampled_at, interval_s) VALUES (true, '2026-02-01+00', 60);

INSERT INTO lag_snapshot (group_id, snapshot_id, snapshot_at)
SELECT 'g', 's' || n, '2026-01-31 22:30+00'::timestamptz + n * interval '1 hour'
FROM generate_series(0, 3) n;

INSERT INTO partition_lag (group_id, snapshot_at, topic, partition, lag, arrival_rate)
SELECT group_id, snapshot_at, 't', p, 10 * p, p / 3.0::float8
FROM lag_snapshot, generate_series(0, 2) p;

INSERT INTO member_capacity (group_id, member, records_per_s, measured, measured_at)
VALUES ('g', 'c0', 12.5, true, '2026-01-31+00');

INSERT INTO group_diagnosis (group_id, since, last_seen, diagnosis, names, evidence, consumers_why,
    costs, reported)
VALUES ('g', '2026-01-31+00', '2026-02-01+00', 'slow member', '{c0}', 'c0 is slow', 'it is enough',
    '{"t": {"0": [7.6, 0.1, 1769817600]}}',
    '{"partitions": {"t": {"0": [0.1, 0.2, 0.3]}}, "consumers": {"c0": 0.5}}');
"""
COLUMNS = """
    SELECT relname AS table, string_agg(quote_ident(attname), ', ' ORDER BY attnum) AS names
    FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid
    WHERE relnamespace = 'fairlead_raw'::regnamespace AND relkind IN ('r', 'p')
        AND NOT relispartition AND attnum > 0
    GROUP BY relname
"""


@pytest.fixture
def another_build(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Use a copy of the migrations until `monkeypatch.undo`; return the copy's folder."""
    migrations = tmp_path / "migrations"
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(migrate.MIGRATIONS, migrations, ignore=ignored)
    monkeypatch.setattr(migrate, "MIGRATIONS", migrations)
    return migrations


@pytest.fixture
def engine(migrated: str) -> Iterator[Engine]:
    """Return an engine for a migrated database; its queries need no schema name for tables."""
    searched = make_url(migrated).update_query_dict({"options": "-csearch_path=fairlead_raw"})
    engine = create_store_engine(searched.render_as_string(hide_password=False))
    yield engine
    engine.dispose()


@pytest.mark.postgres
def test_rows_survive_the_next_revision(
    migrated: str, engine: Engine, another_build: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next revision keeps all rows. The present build then refuses the upgraded database."""
    with transaction(engine) as connection:
        connection.execute(text(ROWS))
        columns = {row.table: row.names for row in connection.execute(text(COLUMNS))}

    def stored() -> dict[str, list[str]]:
        with transaction(engine) as connection:
            return {
                table: sorted(connection.scalars(text(f"SELECT ({names})::text FROM {table}")))
                for table, names in columns.items()
            }

    before = stored()
    assert [table for table, rows in before.items() if not rows] == []
    (another_build / "versions" / "0002_next.py").write_text(NEXT.format(head=migrate.head()))
    migrate.upgrade(migrated)
    assert migrate.current(migrated) == "0002"
    assert stored() == before
    with transaction(engine) as connection:
        assert connection.scalar(text("SELECT priority FROM fairlead.plan")) == 7
    monkeypatch.undo()
    with pytest.raises(ConfigurationError, match="its revision is 0002"):
        migrate.upgrade(migrated)


def test_name_of_the_first_revision_depends_on_every_file(
    another_build: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A change in any file that defines the schema changes the first revision's name."""
    tables = shutil.copytree(Path(models.__file__).parent, another_build / "models")
    monkeypatch.setattr(models, "__file__", str(tables / "__init__.py"))
    names = [migrate.head()]
    for sources in ("versions/*.py", "sql/*.sql", "models/*.py"):
        for source in another_build.glob(sources):
            with source.open("a") as file:
                file.write("\n")
            names.append(migrate.head())
    assert len(set(names)) == len(names) > 10


@pytest.mark.postgres
@pytest.mark.parametrize("revision", ["0001", "0001_0123abcd", "0015"])
def test_unknown_schema_is_not_upgraded(migrated: str, engine: Engine, revision: str) -> None:
    """A database with a revision of another build is refused, with advice."""
    with transaction(engine) as connection:
        connection.execute(
            text("UPDATE fairlead.alembic_version SET version_num = :revision"),
            {"revision": revision},
        )
    for command in (migrate.upgrade, migrate.current, migrate.check):
        with pytest.raises(ConfigurationError) as error:
            command(migrated)
        for part in ("made by another build", f"revision is {revision},", "by dropping"):
            assert part in str(error.value)
