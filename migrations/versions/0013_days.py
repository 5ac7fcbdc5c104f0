"""Decisions, candidates, balances and adoptions by the day, as lag is, and what is kept for longer.

Revision 0013, from 0012. Rows are carried over both ways, and summed up; going back, the summaries
are lost.
"""

import re
from pathlib import Path

from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None

SQL = Path(__file__).parents[1] / "sql"
#: Functions that people call stay where they call them.
CALLED = "lag_days|prune_lag"
READERS = "fairlead_planner, fairlead_approver, fairlead_reader"


def as_moved(sql: str) -> str:
    """Return what earlier revisions have created, by the names that the eighth has given it."""
    return re.sub(rf"\bfairlead\.(?!({CALLED})\b)", "fairlead_raw.", sql).replace(
        "'fairlead'::regnamespace", "'fairlead_raw'::regnamespace"
    )


def upgrade() -> None:
    """Make the days, carry the rows over, and show what people query."""
    op.execute((SQL / "0013_days.sql").read_text())


def downgrade() -> None:
    """Make one table of each history again, and the functions what earlier revisions have."""
    op.execute((SQL / "0013_back.sql").read_text())
    history = as_moved((SQL / "0002_history.sql").read_text())
    _, found, rest = history.partition("CREATE FUNCTION fairlead.lag_days()")
    op.execute(found + rest.partition("\n\n\n")[0])
    locks = (SQL / "0011_locks.sql").read_text()
    dropped = (
        "Drops the lag of all whole days (UTC) before a moment; returns the days and the"
        " bytes freed."
    )
    for name, comment in (
        ("fairlead_raw.ensure_lag_day", "Makes the partition of partition_lag for a day (UTC)."),
        ("fairlead.prune_lag", dropped),
    ):
        _, found, rest = locks.partition(f"CREATE OR REPLACE FUNCTION {name}(")
        op.execute(f"{found}{rest.partition('END $$;')[0]}END $$;")
        op.execute(f"COMMENT ON FUNCTION {name} IS '{comment}'")
        op.execute(f"REVOKE EXECUTE ON FUNCTION {name} FROM PUBLIC")
    op.execute("REVOKE EXECUTE ON FUNCTION fairlead.lag_days FROM PUBLIC")
    op.execute(f"GRANT EXECUTE ON FUNCTION fairlead.lag_days TO {READERS}")
    op.execute("GRANT EXECUTE ON FUNCTION fairlead_raw.ensure_lag_day TO fairlead_planner")
