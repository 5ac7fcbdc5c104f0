"""How topics are spread, with every balance and candidate.

Revision 0014, from 0013. What was stored before has no figure; going back forgets those there are.
"""

from pathlib import Path

from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None

SQL = Path(__file__).parents[1] / "sql"
#: What is made again of the revision before, and how each statement ends there.
AGAIN = (
    ("VIEW fairlead.candidate ", ";"),
    ("VIEW fairlead.plan_history ", ";"),
    ("VIEW fairlead.balance_history ", ";"),
    ("FUNCTION fairlead_raw.sum_up_balances()", "END $$;"),
)


def upgrade() -> None:
    """Add the columns, and show them."""
    op.execute((SQL / "0014_spread.sql").read_text())


def downgrade() -> None:
    """Drop the columns, and make views and function what they were."""
    op.execute((SQL / "0014_back.sql").read_text())
    before = (SQL / "0013_days.sql").read_text()
    for what, end in AGAIN:
        _, found, rest = before.partition(what)
        op.execute(f"CREATE OR REPLACE {found}{rest.partition(end)[0]}{end}")
    op.execute((SQL / "0014_said.sql").read_text())
