"""Locks that nobody but the owner of the schema can take.

Revision 0011, from 0010. Rows stay as they are both ways.
"""

import re
from pathlib import Path

from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

SQL = Path(__file__).parents[1] / "sql"
BY_EVERYBODY = """
DO $$
DECLARE
    owned boolean := (
        SELECT pg_has_role(datdba, 'USAGE') FROM pg_database WHERE datname = current_database()
    );
BEGIN
    IF owned THEN
        EXECUTE format('GRANT CONNECT, TEMPORARY ON DATABASE %I TO PUBLIC', current_database());
        EXECUTE format(
            'REVOKE CONNECT ON DATABASE %I'
            ' FROM fairlead_planner, fairlead_approver, fairlead_reader', current_database()
        );
    END IF;
END $$
"""


#: Functions that people call stay where they call them.
CALLED = "approve_plan|reject_plan|plan_diff|plan_owners|lag_days|prune_lag"


def as_moved(sql: str) -> str:
    """Return what earlier revisions have created, by the names that the eighth has given it."""
    return re.sub(rf"\bfairlead\.(?!({CALLED})\b)", "fairlead_raw.", sql).replace(
        "'fairlead'::regnamespace", "'fairlead_raw'::regnamespace"
    )


def upgrade() -> None:
    """Replace what makes and drops days, and lock what a batch can have."""
    op.execute((SQL / "0011_locks.sql").read_text())


def downgrade() -> None:
    """Make the functions what earlier revisions have, and let everybody connect again."""
    history = as_moved((SQL / "0002_history.sql").read_text())
    for name in ("fairlead_raw.ensure_lag_day", "fairlead.prune_lag"):
        _, found, rest = history.partition(f" FUNCTION {name}(")
        op.execute(f"CREATE OR REPLACE{found}{rest.partition('END $$;')[0]}END $$;")
    judgement = as_moved((SQL / "0007_judgement.sql").read_text())
    _, found, rest = judgement.partition(" FUNCTION fairlead_raw.record_diagnoses(")
    op.execute(f"CREATE OR REPLACE{found}{rest.partition('END $$;')[0]}END $$;")
    op.execute("DROP FUNCTION fairlead_raw.lock_groups")
    for name in ("approve_plan", "reject_plan"):
        op.execute(f"ALTER FUNCTION fairlead.{name} RESET lock_timeout")
    op.execute(BY_EVERYBODY)
