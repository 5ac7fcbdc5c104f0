"""Alembic's environment: the database, the schemas and the models of migrations.

Belongs here: how a migration runs. Belongs elsewhere: the migrations (`versions`), how they are
found and started (`fairlead.store.migrate`).
"""

import re

from alembic import context
from sqlalchemy import text

from fairlead.store.engine import create_store_engine
from fairlead.store.models.base import RAW, SCHEMA, Base

# Key of the advisory lock that makes simultaneous upgrades of a database take turns.
MIGRATION_LOCK = 5_337
A_DAY = re.compile(r"(partition_lag|decision|candidate|balance|plan_adoption|group_sample)_\d{8}")


def include_name(name: str | None, kind: str, _parents: object) -> bool:
    """Whether Alembic compares an object with the models: only objects in our schemas.

    The database may contain other schemas, such as Dagster's. Table partitions for single days of
    history are not compared, because writers create them.
    """
    if kind == "table":
        return not A_DAY.fullmatch(name or "")
    return kind != "schema" or name in {SCHEMA, RAW}


def run() -> None:
    """Run migrations in one transaction: if one fails, the database stays unchanged."""
    engine = create_store_engine(context.config.attributes["url"])
    try:
        with engine.begin() as connection:
            connection.execute(text(f"SELECT pg_advisory_xact_lock({MIGRATION_LOCK})"))
            # Check first: IF NOT EXISTS needs the right to create schemas, which our user may lack.
            if connection.scalar(text(f"SELECT to_regnamespace('{SCHEMA}')")) is None:
                connection.execute(text(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}"))
            context.configure(
                connection=connection,
                target_metadata=Base.metadata,
                version_table_schema=SCHEMA,
                include_schemas=True,
                include_name=include_name,
                compare_type=True,
            )
            context.run_migrations()
    finally:
        engine.dispose()


run()
