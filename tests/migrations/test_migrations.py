"""Migrations: agreement with the models, failures, roles, comments, and kept columns."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import Engine, make_url, text

from fairlead.domain.figures import figure
from fairlead.errors import ConfigurationError
from fairlead.sandbox.postgres import Postgres
from fairlead.store import migrate
from fairlead.store.engine import create_store_engine, transaction
from fairlead.store.models.base import Base
from tests.waiting import PATIENCE_S

pytestmark = pytest.mark.postgres

CONSTRAINTS = """
    SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint
    WHERE connamespace = 'fairlead_raw'::regnamespace AND contype <> 't'
"""
OBJECTS = """
    SELECT nspname, 'relation', relname FROM pg_class
    JOIN pg_namespace ON relnamespace = pg_namespace.oid WHERE nspname ~ '^fairlead'
    UNION SELECT nspname, 'function', proname FROM pg_proc
    JOIN pg_namespace ON pronamespace = pg_namespace.oid WHERE nspname ~ '^fairlead'
"""
NAMES = """
    SELECT 'column', relation.oid::regclass::text, attname, format_type(atttypid, atttypmod)
    FROM pg_class relation JOIN pg_attribute ON attrelid = relation.oid
    WHERE relnamespace::regnamespace::text ~ '^fairlead' AND relkind IN ('r', 'p', 'v')
        AND NOT relispartition AND attnum > 0 AND NOT attisdropped
    UNION ALL
    SELECT 'function', oid::regprocedure::text, 'returns', pg_get_function_result(oid)
    FROM pg_proc
    WHERE pronamespace = 'fairlead'::regnamespace
"""
COMMENTS = """
    SELECT relation.oid::regclass::text, attname, col_description(relation.oid, attnum)
    FROM pg_class relation JOIN pg_attribute ON attrelid = relation.oid
    WHERE relnamespace::regnamespace::text ~ '^fairlead' AND relkind IN ('r', 'p', 'v')
        AND NOT relispartition AND attnum > 0 AND NOT attisdropped
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
        AND NOT relispartition AND CASE attnum WHEN 0 THEN obj_description(relation.oid, 'pg_class')
            ELSE col_description(relation.oid, attnum) END IS NULL
    UNION ALL
    SELECT 'function', oid::regprocedure::text FROM pg_proc
    WHERE pronamespace = 'fairlead'::regnamespace AND obj_description(oid, 'pg_proc') IS NULL
    UNION ALL
    SELECT 'schema', nspname FROM pg_namespace
    WHERE nspname ~ '^fairlead' AND obj_description(oid, 'pg_namespace') IS NULL
"""


@pytest.fixture
def engine(database: str) -> Iterator[Engine]:
    """Return an SQLAlchemy engine for an empty database."""
    engine = create_store_engine(database)
    yield engine
    engine.dispose()


def rows(engine: Engine, query: str) -> set[tuple[str, ...]]:
    with transaction(engine) as connection:
        return {tuple(row) for row in connection.execute(text(query))}


def test_database_with_another_encoding_is_refused(database: str) -> None:
    """The error for a database that is not in UTF-8 contains the solution, `ENCODING 'UTF8'`."""
    ascii_only = make_url(database).set(database=f"{make_url(database).database}_ascii")
    with psycopg.connect(database, autocommit=True) as connection:
        made = f"CREATE DATABASE {ascii_only.database} TEMPLATE template0"
        connection.execute(f"{made} ENCODING 'SQL_ASCII' LOCALE 'C'")
        try:
            with pytest.raises(ConfigurationError, match=r"encoding SQL_ASCII.*ENCODING 'UTF8'"):
                migrate.upgrade(ascii_only.render_as_string(hide_password=False))
        finally:
            connection.execute(f"DROP DATABASE {ascii_only.database} WITH (FORCE)")


def test_migrations_and_models_agree(database: str, engine: Engine) -> None:
    """A migrated database has the models' tables, indexes and constraints.

    Alembic compares tables and indexes. This test compares constraints, as Postgres shows them.
    """
    migrate.upgrade(database)
    migrate.check(database)
    migrated = rows(engine, CONSTRAINTS)
    with transaction(engine) as connection:
        connection.execute(text("DROP SCHEMA fairlead, fairlead_raw CASCADE"))
        connection.execute(text("CREATE SCHEMA fairlead_raw"))
    Base.metadata.create_all(engine)
    assert migrated == rows(engine, CONSTRAINTS)
    assert len(migrated) > 5


def test_check_finds_differences(database: str, engine: Engine) -> None:
    """The check fails for a database that was never migrated, and for one with another column."""
    with pytest.raises(ConfigurationError, match="fairlead db upgrade"):
        migrate.check(database)
    migrate.upgrade(database)
    with transaction(engine) as connection:
        connection.execute(text("ALTER TABLE fairlead_raw.plan ADD COLUMN priority int"))
    with pytest.raises(ConfigurationError, match="priority"):
        migrate.check(database)


def test_failed_migration_changes_nothing(database: str, engine: Engine) -> None:
    """A migration is one transaction: if it fails because a name is taken, it leaves no table."""
    with transaction(engine) as connection:
        connection.execute(text("CREATE SCHEMA fairlead"))
        connection.execute(text("CREATE VIEW fairlead.adoption AS SELECT 1"))
    with pytest.raises(Exception, match="adoption"):
        migrate.upgrade(database)
    assert rows(engine, OBJECTS) == {("fairlead", "relation", "adoption")}


def test_simultaneous_upgrades_succeed(database: str) -> None:
    """If two processes upgrade a database, one waits for the other, and both succeed."""
    program = "import sys; from fairlead.store.migrate import upgrade; upgrade(sys.argv[1])"
    command = [sys.executable, "-c", program, database]
    upgrades = [subprocess.Popen(command) for _ in range(2)]
    assert [process.wait(timeout=PATIENCE_S) for process in upgrades] == [0, 0]
    assert migrate.current(database) == migrate.head()


def test_every_object_has_a_comment(database: str, engine: Engine) -> None:
    """All schemas, tables, views, columns, and functions for people have a comment in Postgres."""
    migrate.upgrade(database)
    assert rows(engine, UNCOMMENTED) == set()


def test_owner_without_createrole_gets_the_statements(own_services: Path) -> None:
    """The error has SQL for an administrator, after which the owner can migrate.

    In the first database, the owner cannot create the roles; in the second, the schemas.
    """
    server = Postgres(own_services / "postgres")  # without roles that other tests created
    if server.state_dir.exists():
        shutil.rmtree(server.state_dir)
    server.start()
    url = server.url("fairlead")
    try:
        with psycopg.connect(url, autocommit=True) as administrator:
            administrator.execute("CREATE ROLE owner LOGIN")
            administrator.execute("CREATE DATABASE owned OWNER owner")
            administrator.execute("CREATE SCHEMA fairlead AUTHORIZATION owner")
            for database, refused in (("owned", "roles"), ("fairlead", "schemas")):
                as_owner = server.url(database).replace("postgres@", "owner@")
                with pytest.raises(ConfigurationError, match=f"may not create {refused}") as error:
                    migrate.upgrade(as_owner)
                _, _, statements = str(error.value).partition("let an administrator run: ")
                administrator.execute(statements.encode())
                migrate.upgrade(as_owner)
                assert migrate.current(as_owner) == migrate.head()
            administrator.execute("CREATE ROLE reader LOGIN IN ROLE fairlead_reader")
        migrate.check(url.replace("postgres@", "reader@"))
    finally:
        server.stop()


def test_schema_of_the_first_release_is_kept(migrated: str) -> None:
    """No column or function of 0.1.0 is removed or changes its type."""
    engine = create_store_engine(migrated)
    try:
        found = {" ".join(row) for row in rows(engine, NAMES)}
    finally:
        engine.dispose()
    kept = (Path(__file__).parents[1] / "vectors/schema.txt").read_text().splitlines()
    assert len(kept) > 500
    assert sorted(set(kept) - found) == []


def test_comments_of_columns_are_the_meanings_of_their_figures(migrated: str) -> None:
    """If a column holds a figure, its comment is the figure's meaning in `domain.figures`."""
    engine = create_store_engine(migrated)
    try:
        found = rows(engine, COMMENTS)
    finally:
        engine.dispose()
    texts = {(relation, column): (comment, _meaning(column)) for relation, column, comment in found}
    figures = {place: both for place, both in texts.items() if both[1] is not None}
    assert {
        ("fairlead.plan_history", "forecast_time_lag_before"),
        ("fairlead.partition_work", "time_share"),
    } <= {*figures}
    assert {place for place, (comment, meaning) in figures.items() if comment != meaning} == set()


def _meaning(column: str) -> str | None:
    """Return the meaning of the figure with a column's name, or None if there is no such figure."""
    try:
        return figure(column).meaning
    except KeyError:
        return None
