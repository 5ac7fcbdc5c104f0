"""Alembic's environment: which database, which schemas, which models.

Belongs here: how a migration runs. Does not: what is migrated (`versions`), how migrations are
found and started (`fairlead.store.migrate`).
"""

import re

from alembic import context
from sqlalchemy import text

from fairlead.store.engine import create_store_engine
from fairlead.store.models.base import RAW, SCHEMA, Base

# Any fixed number: two upgrades of one database at once take turns.
MIGRATION_LOCK = 5_337
A_DAY = re.compile(r"(partition_lag|decision|candidate|balance|plan_adoption|group_sample)_\d{8}")


def include_name(name: str | None, kind: str, _parents: object) -> bool:
    """Compare only our schemas, without the days of history, which writers create.

    The database may hold other schemas, such as Dagster's.
    """
    if kind == "table":
        return not A_DAY.fullmatch(name or "")
    return kind != "schema" or name in {SCHEMA, RAW}


def run() -> None:
    """Run in one transaction: a migration that fails leaves the database as it was."""
    engine = create_store_engine(context.config.attributes["url"])
    try:
        with engine.begin() as connection:
            connection.execute(text(f"SELECT pg_advisory_xact_lock({MIGRATION_LOCK})"))
            # IF NOT EXISTS also needs the right to create schemas, which our user may lack.
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
