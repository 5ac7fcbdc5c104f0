"""What fewer moves would have bought, beside each candidate.

Revision 0005, from 0004. Candidates stored before have none; going back forgets them.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column; the rights on the table, which are on all of it, cover it."""
    op.add_column(
        "candidate",
        sa.Column(
            "frontier",
            JSONB(),
            nullable=True,
            comment="What fewer moves would have bought: [moves, load of the heaviest member], ...",
        ),
        schema="fairlead",
    )


def downgrade() -> None:
    """Drop the column."""
    op.drop_column("candidate", "frontier", schema="fairlead")
