"""Traffic between racks, with every balance and candidate.

Revision 0015, from 0014. What was stored before has no figure; going back forgets those there are.
"""

from pathlib import Path

from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None

SQL = Path(__file__).parents[1] / "sql"


def upgrade() -> None:
    """Add the columns, and show them."""
    op.execute((SQL / "0015_racks.sql").read_text())


def downgrade() -> None:
    """Drop the columns, and make views and function what they were."""
    op.execute((SQL / "0015_back.sql").read_text())
    days, spread = ((SQL / f"{name}.sql").read_text() for name in ("0013_days", "0014_spread"))
    op.execute(statement(days, "VIEW fairlead.plan_history ", ";"))
    for what, end in (
        ("CREATE OR REPLACE VIEW fairlead.candidate ", ";"),
        ("CREATE OR REPLACE VIEW fairlead.balance_history", ";"),
        ("DO $$", "END $$;"),  # the first: it adds to plan_history
        ("CREATE OR REPLACE FUNCTION fairlead_raw.sum_up_balances()", "END $$;"),
    ):
        op.execute(statement(spread, what, end, create=""))
    op.execute((SQL / "0014_said.sql").read_text())


def statement(sql: str, what: str, end: str, create: str = "CREATE OR REPLACE ") -> str:
    """Return the statement of a script that begins and ends so."""
    _, found, rest = sql.partition(what)
    return f"{create}{found}{rest.partition(end)[0]}{end}"
