"""What fewer moves would have bought is told in the unit that decides: seconds late.

Revision 0009, from 0008. Frontiers stored before are in records, of another figure: they go.
"""

from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

IN_SECONDS = "What fewer moves would have bought: [moves, late_s], ..."
IN_RECORDS = "What fewer moves would have bought: [moves, load of the heaviest member], ..."


def upgrade() -> None:
    """Forget frontiers in records."""
    _tell(IN_SECONDS)


def downgrade() -> None:
    """Forget frontiers in seconds."""
    _tell(IN_RECORDS)


def _tell(comment: str) -> None:
    op.execute("ALTER TABLE fairlead_raw.candidate DISABLE TRIGGER USER")  # rows are written once
    op.execute("UPDATE fairlead_raw.candidate SET frontier = NULL WHERE frontier IS NOT NULL")
    op.execute("ALTER TABLE fairlead_raw.candidate ENABLE TRIGGER USER")
    for schema in ("fairlead", "fairlead_raw"):
        op.execute(f"COMMENT ON COLUMN {schema}.candidate.frontier IS '{comment}'")
