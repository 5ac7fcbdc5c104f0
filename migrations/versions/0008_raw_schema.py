"""Tables in a schema of their own, `fairlead_raw`: `fairlead` has what people read and call.

Revision 0008, from 0007. Tables, their days and functions change their schema, both ways; nothing
is copied. What was in the schema is moved whatever it is, so that nothing is left behind.
"""

from pathlib import Path

from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

SQL = Path(__file__).parents[1] / "sql"


def upgrade() -> None:
    """Move what the software alone works with, and show what people ask of it."""
    op.execute((SQL / "0008_raw.sql").read_text())


def downgrade() -> None:
    """Move it back, under the names it had."""
    op.execute((SQL / "0008_back.sql").read_text())
