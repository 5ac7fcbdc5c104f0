"""The first schema: tables as the models have them, then what guards and shows them (`sql`).

Until the first release this revision is edited in place, so it makes the tables from the models.
Its name ends in a digest of all that it runs: a database of another build has another revision. The
first release freezes the statements; every later change is a revision of its own.
"""

import hashlib
from pathlib import Path

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from fairlead.store.models import Base

SQL = Path(__file__).parents[1] / "sql"
SUBJECTS = ("life", "history", "judgement", "views", "roles")
RAW_SCHEMA = """
DO $$
BEGIN
    IF to_regnamespace('fairlead_raw') IS NULL THEN
        CREATE SCHEMA fairlead_raw;
    END IF;
EXCEPTION
    WHEN insufficient_privilege THEN
        RAISE EXCEPTION '% may not create schemas; let an administrator run: %', current_user,
            format('CREATE SCHEMA fairlead_raw AUTHORIZATION %I;', current_user)
            USING ERRCODE = 'FL005';
END $$;
COMMENT ON SCHEMA fairlead IS 'What people read and call: views and functions.';
COMMENT ON SCHEMA fairlead_raw IS
    'Tables, and what writes and guards them; the views of the schema fairlead show them.';
"""


def statements() -> list[str]:
    """Return all that makes the schema, in order."""
    tables: list[str] = []
    dialect = postgresql.dialect()  # type: ignore[no-untyped-call]
    engine = sa.create_mock_engine(
        "postgresql+psycopg://",
        lambda made, *_, **__: tables.append(str(made.compile(dialect=dialect))),
    )
    Base.metadata.create_all(engine, checkfirst=False)
    return [RAW_SCHEMA, *tables, *((SQL / f"{name}.sql").read_text() for name in SUBJECTS)]


STATEMENTS = statements()
# Sorted: SQLAlchemy keeps the indexes of a table in a set.
revision = f"0001_{hashlib.sha256(''.join(sorted(STATEMENTS)).encode()).hexdigest()[:12]}"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the schema in an empty database."""
    for statement in STATEMENTS:
        op.execute(statement)
