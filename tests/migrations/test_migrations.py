"""Migrations: from empty, back, again, and in agreement with the models."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import Engine, text

from fairlead.errors import ConfigurationError
from fairlead.sandbox.postgres import Postgres
from fairlead.store import create_store_engine, migrate
from fairlead.store.engine import transaction
from fairlead.store.models import Base

pytestmark = pytest.mark.postgres

CHECKS = """
    SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint
    WHERE connamespace = 'fairlead_raw'::regnamespace AND contype = 'c' ORDER BY 1, 2
"""
ROLES = ("fairlead_approver", "fairlead_planner", "fairlead_reader")
RIGHTS = """
    SELECT DISTINCT rolname FROM pg_shdepend JOIN pg_roles ON pg_roles.oid = refobjid
    WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database())
        AND rolname LIKE 'fairlead%'
"""
OBJECTS = """
    SELECT nspname, 'relation', relname FROM pg_class
    JOIN pg_namespace ON relnamespace = pg_namespace.oid WHERE nspname ~ '^fairlead'
    UNION SELECT nspname, 'function', proname FROM pg_proc
    JOIN pg_namespace ON pronamespace = pg_namespace.oid WHERE nspname ~ '^fairlead'
"""
COLUMNS = """
    SELECT table_schema, table_name, column_name, data_type FROM information_schema.columns
    WHERE table_schema ~ '^fairlead'
"""
UNCOMMENTED = """
    SELECT 'relation', relation.oid::regclass::text || coalesce('.' || attname, '')
    FROM pg_class relation
    CROSS JOIN LATERAL (
        SELECT 0 AS attnum, NULL AS attname
        UNION ALL
        SELECT attnum, attname FROM pg_attribute
        WHERE attrelid = relation.oid AND attnum > 0 AND NOT attisdropped
    ) part
    WHERE relnamespace::regnamespace::text ~ '^fairlead' AND relkind IN ('r', 'p', 'v')
        AND CASE attnum WHEN 0 THEN obj_description(relation.oid, 'pg_class')
            ELSE col_description(relation.oid, attnum) END IS NULL
    UNION ALL
    SELECT 'function', oid::regprocedure::text FROM pg_proc
    WHERE pronamespace::regnamespace::text ~ '^fairlead' AND obj_description(oid, 'pg_proc') IS NULL
    UNION ALL
    SELECT 'schema', nspname FROM pg_namespace
    WHERE nspname ~ '^fairlead' AND obj_description(oid, 'pg_namespace') IS NULL
"""

OF_0012 = """
INSERT INTO fairlead_raw.consumer_group (group_id) VALUES ('g');
INSERT INTO fairlead_raw.plan (group_id, version, plan_id, assignor, reason, snapshot_id,
    snapshot_at, created_at, document, sha256)
VALUES ('g', 1, gen_random_uuid(), 'sticky', 'why', 's0', '2026-01-31 22:00+00',
    '2026-01-31 22:00+00', 'plan', encode(sha256('plan'), 'hex'));
INSERT INTO fairlead_raw.decision (group_id, snapshot_id, snapshot_at, outcome, reason, version)
VALUES ('g', 's0', '2026-01-31 22:00+00', 'plan', 'why', 1),
    ('g', 's1', '2026-01-31 23:00+00', 'no change', 'cooldown', NULL),
    ('g', 's2', '2026-02-01 00:00+00', 'failed', 'why', NULL);
INSERT INTO fairlead_raw.candidate (group_id, snapshot_id, assignor, lag_max)
VALUES ('g', 's0', 'sticky', 12), ('g', 's2', 'sticky', 12);
INSERT INTO fairlead_raw.balance
    (group_id, measured_at, kind, version, snapshot_id, lag_max, lag_mean, late_s)
VALUES ('g', '2026-01-31 22:00+00', 'observed', NULL, 's0', 40, 10, 5),
    ('g', '2026-01-31 22:00+00', 'predicted', 1, 's0', 20, 10, 1),
    ('g', '2026-01-31 23:00+00', 'observed', NULL, 's1', 20, 10, 1),
    ('g', '2026-01-31 23:00+00', 'achieved', 1, 's1', 25, 10, 1),
    ('g', '2026-02-01 00:00+00', 'observed', NULL, 's2', 30, 10, 1),
    ('g', '2026-02-01 00:00+00', 'achieved', 1, 's2', 15, 10, 1);
INSERT INTO fairlead_raw.plan_adoption (group_id, version, observed_at, planned, as_planned)
VALUES ('g', 1, '2026-01-31 23:00+00', 3, 1), ('g', 1, '2026-02-01 00:00+00', 3, 2)
"""


@pytest.fixture
def engine(database: str) -> Iterator[Engine]:
    """Return an engine on an empty database."""
    engine = create_store_engine(database)
    yield engine
    engine.dispose()


def rows(engine: Engine, query: str) -> set[tuple[str, ...]]:
    with transaction(engine) as connection:
        return {tuple(row) for row in connection.execute(text(query))}


def test_an_empty_database_becomes_the_newest(database: str) -> None:
    """From nothing to the newest revision; a second time changes nothing."""
    assert migrate.current(database) is None
    migrate.upgrade(database)
    assert migrate.current(database) == migrate.head()
    migrate.upgrade(database)
    assert migrate.current(database) == migrate.head()


def test_migrations_and_models_agree(database: str, engine: Engine) -> None:
    """Tables, columns, types, keys, indexes and comments by Alembic; checks by Postgres."""
    migrate.upgrade(database)
    migrate.check(database)
    migrated = rows(engine, CHECKS)
    migrate.downgrade(database, "base")
    Base.metadata.create_all(engine)
    assert migrated == rows(engine, CHECKS)
    assert len(migrated) > 5


def test_a_database_that_differs_is_found(database: str, engine: Engine) -> None:
    """A column added by hand, and a database never migrated, are told."""
    with pytest.raises(ConfigurationError, match="fairlead db upgrade"):
        migrate.check(database)
    migrate.upgrade(database)
    with transaction(engine) as connection:
        connection.execute(text("ALTER TABLE fairlead_raw.plan ADD COLUMN priority int"))
    with pytest.raises(ConfigurationError, match="priority"):
        migrate.check(database)


def test_a_downgrade_leaves_nothing_behind(database: str, engine: Engine) -> None:
    """Tables, views and functions go; what is left is Alembic's own table; upgrading works."""
    migrate.upgrade(database)
    everything = rows(engine, OBJECTS)
    migrate.downgrade(database, "base")
    assert {name for *_, name in rows(engine, OBJECTS)} == {
        "alembic_version",
        "alembic_version_pkc",
    }
    migrate.upgrade(database)
    assert rows(engine, OBJECTS) == everything


def test_a_migration_that_fails_changes_nothing(database: str, engine: Engine) -> None:
    """All of it is one transaction: a view in the way leaves no table behind."""
    with transaction(engine) as connection:
        connection.execute(text("CREATE SCHEMA fairlead"))
        connection.execute(text("CREATE VIEW fairlead.adoption AS SELECT 1"))
    with pytest.raises(Exception, match="adoption"):
        migrate.upgrade(database)
    assert rows(engine, OBJECTS) == {("fairlead", "relation", "adoption")}


def test_upgrades_at_once_take_turns(database: str) -> None:
    """Hosts that start together do not create the same table twice."""
    program = "import sys; from fairlead.store.migrate import upgrade; upgrade(sys.argv[1])"
    command = [sys.executable, "-c", program, database]
    upgrades = [subprocess.Popen(command) for _ in range(3)]
    assert [process.wait(timeout=120) for process in upgrades] == [0, 0, 0]
    assert migrate.current(database) == migrate.head()


def test_alembics_table_is_in_our_schema(database: str, engine: Engine) -> None:
    """Dagster has a table of the same name, which is not ours to read."""
    with transaction(engine) as connection:
        connection.execute(text("CREATE TABLE public.alembic_version (version_num text)"))
        connection.execute(text("INSERT INTO public.alembic_version VALUES ('dagster')"))
    migrate.upgrade(database)
    migrate.check(database)
    assert rows(engine, "SELECT version_num FROM public.alembic_version") == {("dagster",)}
    assert rows(engine, "SELECT version_num FROM fairlead.alembic_version") == {
        (str(migrate.head()),)
    }


def test_everything_has_a_comment(database: str, engine: Engine) -> None:
    """Whoever meets a table, a view, a column of them or a function in psql can ask what it is."""
    migrate.upgrade(database)
    with transaction(engine) as connection:
        connection.execute(text("SELECT fairlead_raw.ensure_day('2026-01-31')"))
    assert rows(engine, UNCOMMENTED) == set()


def test_people_find_views_alone(database: str, engine: Engine) -> None:
    """Tables are not in their way, no two names differ by an s, and a load has one name."""
    migrate.upgrade(database)
    tables = "SELECT relname FROM pg_class WHERE relnamespace = 'fairlead'::regnamespace"
    assert rows(engine, f"{tables} AND relkind NOT IN ('v', 'i')") == {("alembic_version",)}
    names = {name for _, kind, name in rows(engine, OBJECTS) if kind == "relation"}
    assert {"plan_moves", "moved_partition"} <= names
    assert not names & {f"{name}s" for name in names}
    columns = rows(engine, COLUMNS)
    assert not [row for row in columns if "heaviest" in row[2]]
    raw = {row[1:] for row in columns if row[0] == "fairlead_raw"}
    shown = {row[1:] for row in columns if row[0] == "fairlead"}
    for table in ("plan", "plan_event", "plan_record", "decision", "candidate", "member_capacity"):
        assert {row for row in raw if row[0] == table} == {row for row in shown if row[0] == table}


def test_whoever_may_not_create_roles_is_told_how(tmp_path: Path) -> None:
    """The owner of a database alone migrates it once an administrator has run what was asked."""
    server = Postgres(tmp_path)
    server.start()
    try:
        with psycopg.connect(server.url("fairlead"), autocommit=True) as administrator:
            administrator.execute("CREATE ROLE owner LOGIN")
            administrator.execute("CREATE DATABASE owned OWNER owner")
            url = server.url("owned").replace("postgres@", "owner@")
            with pytest.raises(ConfigurationError, match="owner may not create roles") as error:
                migrate.upgrade(url)
            _, _, statements = str(error.value).partition("let an administrator run: ")
            administrator.execute(statements.encode())
        migrate.upgrade(url)
        migrate.downgrade(url, "base")
        migrate.upgrade(url)
        assert migrate.current(url) == migrate.head()
        # Less still: a schema in somebody else's database, where the roles exist already.
        with psycopg.connect(server.url("fairlead"), autocommit=True) as administrator:
            administrator.execute("CREATE SCHEMA fairlead AUTHORIZATION owner")
            administrator.execute("CREATE ROLE reader LOGIN IN ROLE fairlead_reader")
            url = server.url("fairlead").replace("postgres@", "owner@")
            with pytest.raises(ConfigurationError, match="owner may not create schemas") as error:
                migrate.upgrade(url)
            _, _, statements = str(error.value).partition("let an administrator run: ")
            administrator.execute(statements.encode())
        migrate.upgrade(url)
        migrate.check(server.url("fairlead").replace("postgres@", "reader@"))
    finally:
        server.stop()


def test_rights_go_and_roles_stay_on_a_downgrade(database: str, engine: Engine) -> None:
    """Other databases of the cluster have the roles too; in this one they may nothing any more."""
    migrate.upgrade(database)
    assert rows(engine, RIGHTS) == {(role,) for role in ROLES}
    migrate.downgrade(database, "0002")
    assert rows(engine, RIGHTS) == set()
    assert rows(engine, f"SELECT rolname FROM pg_roles WHERE rolname IN {ROLES}") == {
        (role,) for role in ROLES
    }


def test_installation_without_migrations_says_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Whoever took files out of it learns what to do."""
    monkeypatch.setattr(migrate, "MIGRATIONS", tmp_path)
    with pytest.raises(ConfigurationError, match="the installation is not whole"):
        migrate.upgrade("postgresql://nowhere/db")


def test_lag_is_carried_over_to_days_and_back(database: str, engine: Engine) -> None:
    """Rows of several days, one of them around midnight UTC, survive both ways."""
    migrate.upgrade(database, "0001")
    with transaction(engine) as connection:
        connection.execute(text("INSERT INTO fairlead.consumer_group (group_id) VALUES ('g')"))
        connection.execute(
            text(
                "INSERT INTO fairlead.lag_snapshot (group_id, snapshot_id, snapshot_at)"
                " SELECT 'g', 's' || n, '2026-01-31 22:30+00'::timestamptz + n * interval '1 hour'"
                " FROM generate_series(0, 3) n"
            )
        )
        connection.execute(
            text(
                "INSERT INTO fairlead.partition_lag (group_id, snapshot_at, topic, partition, lag)"
                " SELECT group_id, snapshot_at, 't', p, 10 * p"
                " FROM fairlead.lag_snapshot, generate_series(0, 2) p"
            )
        )
    stored = "SELECT group_id, snapshot_id, topic, partition, lag FROM fairlead.lag_history"
    before = rows(engine, stored)
    assert len(before) == 12
    migrate.upgrade(database, "0002")
    assert rows(engine, stored) == before
    days = rows(engine, "SELECT day::text, relation::text FROM fairlead.lag_days()")
    assert days == {
        ("2026-01-31", "fairlead.partition_lag_20260131"),
        ("2026-02-01", "fairlead.partition_lag_20260201"),
    }
    migrate.downgrade(database, "0001")
    assert rows(engine, stored) == before


def test_histories_are_carried_over_to_days_and_summed_up(database: str, engine: Engine) -> None:
    """What was stored before there were days is asked as before, and is in the summaries."""
    migrate.upgrade(database, "0012")
    with transaction(engine) as connection:
        for statement in OF_0012.split(";\n"):
            connection.execute(text(statement))
    columns = (
        "version, state, moved, lag_max_before, lag_max_predicted, lag_max_achieved,"
        " imbalance_before, imbalance_achieved, adherence, late_before"
    )
    plans = f"SELECT {columns} FROM fairlead.plan_history"
    adoption = "SELECT * FROM fairlead.adoption"
    balances = "SELECT measured_at, kind, version, lag_max, imbalance FROM fairlead.balance_history"
    before = [rows(engine, question) for question in (plans, adoption, balances)]
    assert all(before)
    migrate.upgrade(database)
    assert [rows(engine, question) for question in (plans, adoption, balances)] == before
    assert rows(
        engine,
        "SELECT day::text, (plans, no_changes, failures)::text, (trim_scale(imbalance_first),"
        " trim_scale(imbalance_last), trim_scale(imbalance_worst))::text FROM fairlead.group_day",
    ) == {
        ("2026-01-31", "(1,1,0)", "(4,2,4)"),
        ("2026-02-01", "(0,0,1)", "(3,3,3)"),
    }
    days = "SELECT history, count(*)::text FROM fairlead.history_days() GROUP BY 1"
    assert rows(engine, days) == {
        (history, "2")
        for history in ("balance", "candidate", "decision", "partition_lag", "plan_adoption")
    }
    migrate.downgrade(database, "0012")
    assert [rows(engine, question) for question in (plans, adoption, balances)] == before
    migrate.upgrade(database)
    assert rows(engine, UNCOMMENTED) == set()
    assert rows(engine, plans) == before[0]


@pytest.mark.parametrize(("earlier", "later"), [("0013", "0014"), ("0014", "0015")])
def test_going_back_from_figures_leaves_what_was(
    database: str, engine: Engine, earlier: str, later: str
) -> None:
    """Views, their columns, rights and comments, and the function are those of before."""
    views = """
        SELECT relname, pg_get_viewdef(oid), relacl::text, obj_description(oid, 'pg_class')
        FROM pg_class WHERE relnamespace = 'fairlead'::regnamespace AND relkind = 'v'
    """
    columns = """
        SELECT attrelid::regclass::text, attname, col_description(attrelid, attnum)
        FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
        WHERE relnamespace::regnamespace::text ~ '^fairlead' AND attnum > 0 AND NOT attisdropped
    """
    functions = """
        SELECT proname, prosrc FROM pg_proc WHERE pronamespace = 'fairlead_raw'::regnamespace
    """
    questions = (views, columns, functions)
    migrate.upgrade(database, earlier)
    before = [rows(engine, question) for question in questions]
    migrate.upgrade(database, later)
    for question, was in zip(questions, before, strict=True):
        assert rows(engine, question) != was
    migrate.downgrade(database, earlier)
    assert [rows(engine, question) for question in questions] == before
