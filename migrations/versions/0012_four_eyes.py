"""Groups whose plans need another pair of eyes, whatever the planner says.

Revision 0012, from 0011. Going back forgets the groups; plans keep what they need.
"""

import re
from pathlib import Path

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

SQL = Path(__file__).parents[1] / "sql"
BY_THEIR_WORD = """
DO $$
BEGIN
    EXECUTE 'CREATE OR REPLACE VIEW fairlead.plan_history AS' || replace(
        pg_get_viewdef('fairlead.plan_history'::regclass),
        'COALESCE(approved.database_user, rejected.database_user)',
        'COALESCE(approved.actor, rejected.actor)'
    );
    COMMENT ON COLUMN fairlead.plan_history.decided_by IS 'Who approved or rejected it.';
END $$
"""
READERS = "fairlead_planner, fairlead_approver, fairlead_reader"


#: Functions that people call stay where they call them.
CALLED = "approve_plan|reject_plan|plan_diff|plan_owners|lag_days|prune_lag"


def as_moved(sql: str) -> str:
    """Return what earlier revisions have created, by the names that the eighth has given it."""
    return re.sub(rf"\bfairlead\.(?!({CALLED})\b)", "fairlead_raw.", sql).replace(
        "'fairlead'::regnamespace", "'fairlead_raw'::regnamespace"
    )


def upgrade() -> None:
    """Create the table, and let every new plan heed it."""
    op.create_table(
        "four_eyes",
        sa.Column(
            "groups", sa.Text(), nullable=False, comment="Groups, as in a policy: * and ? stand in."
        ),
        sa.PrimaryKeyConstraint("groups", name="four_eyes_pkey"),
        schema="fairlead_raw",
        comment="Groups whose plans need four eyes; the owner of the schema says which.",
    )
    op.execute(f"GRANT SELECT ON fairlead_raw.four_eyes TO {READERS}")
    op.execute((SQL / "0012_four_eyes.sql").read_text())


def downgrade() -> None:
    """Believe the planner again, and drop the table."""
    life = as_moved((SQL / "0001_life.sql").read_text())
    _, found, rest = life.partition(" FUNCTION fairlead_raw.plan_insert()")
    op.execute(f"CREATE OR REPLACE{found}{rest.partition('END $$;')[0]}END $$;")
    op.execute("ALTER FUNCTION fairlead_raw.plan_insert SET search_path = pg_catalog, pg_temp")
    op.execute("DROP FUNCTION fairlead_raw.needs_four_eyes")
    op.execute(BY_THEIR_WORD)
    op.drop_table("four_eyes", schema="fairlead_raw")
