"""The schema: roles, tables, triggers, functions, views and rights.

Each object is defined in one place: tables with their indexes, constraints and comments in the
models (`fairlead.store.models`), everything else in `migrations/sql`.

Until the first release this revision is edited in place. Its name contains a digest of its sources,
because a build must refuse databases that were created from other sources. At the first release,
fix `revision`, and replace the models by `op.create_table`, because later revisions will change the
models.
"""

import hashlib
from pathlib import Path

from alembic import op

from fairlead.domain import figures
from fairlead.store import models
from fairlead.store.models.base import Base

SQL = Path(__file__).parents[1] / "sql"
BEFORE_TABLES = SQL / "roles.sql"
MODELS = [Path(figures.__file__), *sorted(Path(models.__file__).parent.glob("*.py"))]
_NAMES = ("life", "freeze", "regression_checks", "web", "history", "analysis", "views", "rights")
AFTER_TABLES = [SQL / f"{name}.sql" for name in _NAMES]
SOURCES = [Path(__file__), BEFORE_TABLES, *MODELS, *AFTER_TABLES]

revision = "0001_" + hashlib.sha256(b"".join(map(Path.read_bytes, SOURCES))).hexdigest()[:8]
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create all objects, each after the objects that it needs."""
    op.execute(BEFORE_TABLES.read_text())
    Base.metadata.create_all(op.get_bind(), checkfirst=False)
    for source in AFTER_TABLES:
        op.execute(source.read_text())
