"""No step without a reason, and no approval of a plan that has expired.

Revision 0004, from 0003. Rows stay as they are both ways.
"""

from pathlib import Path

from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

SQL = Path(__file__).parents[1] / "sql"


def upgrade() -> None:
    """Replace what guards a plan's life, and show when plans expire."""
    for name in ("life", "views"):
        op.execute((SQL / f"0004_{name}.sql").read_text())


def downgrade() -> None:
    """Make functions and the view what the third revision has."""
    op.execute((SQL / "0003_views.sql").read_text())  # begins by dropping the view
    op.execute(
        "GRANT SELECT ON fairlead.plan_history"
        " TO fairlead_planner, fairlead_approver, fairlead_reader"
    )
    for name in ("plan_insert", "plan_propose", "plan_update"):
        op.execute(f"ALTER FUNCTION fairlead.{name} RESET search_path")
    _, apply, rest = (
        (SQL / "0003_life.sql")
        .read_text()
        .partition("CREATE OR REPLACE FUNCTION fairlead.plan_event_apply")
    )
    op.execute(apply + rest.partition("DROP FUNCTION")[0])
