"""Roles, four eyes, the origin of a rollback, the difference of two versions, and comments.

Revision 0003, from 0002. The roles belong to the cluster: going back takes their rights in this
database and leaves them to the others.
"""

from pathlib import Path

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

SQL = Path(__file__).parents[1] / "sql"
ROLES = "fairlead_planner, fairlead_approver, fairlead_reader"


def upgrade() -> None:
    """Add the columns, then what guards and shows them, then who may do what."""
    op.add_column(
        "plan",
        sa.Column(
            "four_eyes",
            sa.Boolean(),
            server_default=sa.text("false"),
            nullable=False,
            comment="Whether the approver must not be the proposer, nor a planner.",
        ),
        schema="fairlead",
    )
    op.add_column(
        "plan",
        sa.Column(
            "rolled_back_from",
            sa.Integer(),
            nullable=True,
            comment="The version whose assignment this is again; null: it is a new one.",
        ),
        schema="fairlead",
    )
    op.create_check_constraint(
        op.f("plan_rolled_back_from_check"), "plan", "rolled_back_from < version", schema="fairlead"
    )
    op.create_foreign_key(
        "plan_plan_fkey",
        "plan",
        "plan",
        ["group_id", "rolled_back_from"],
        ["group_id", "version"],
        source_schema="fairlead",
        referent_schema="fairlead",
    )
    for name in ("life", "diff", "views", "roles"):
        op.execute((SQL / f"0003_{name}.sql").read_text())


def downgrade() -> None:
    """Take the roles' rights, and make functions and the view what they were."""
    op.execute(f"REVOKE ALL ON ALL TABLES IN SCHEMA fairlead FROM {ROLES}")
    op.execute(f"REVOKE ALL ON ALL FUNCTIONS IN SCHEMA fairlead FROM {ROLES}")
    op.execute(f"REVOKE ALL ON SCHEMA fairlead FROM {ROLES}")
    op.execute("GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA fairlead TO PUBLIC")
    op.execute("DROP VIEW fairlead.plan_history")
    op.execute(
        "DROP FUNCTION fairlead.plan_diff, fairlead.plan_owners,"
        " fairlead.approve_plan, fairlead.reject_plan"
    )
    op.execute("ALTER FUNCTION fairlead.lock_group SECURITY INVOKER RESET search_path")
    apply = of_0001("life", " FUNCTION fairlead.plan_event_apply", "CREATE TRIGGER")
    op.execute(f"CREATE OR REPLACE{apply}")
    op.execute(of_0001("life", "CREATE FUNCTION fairlead.approve_plan"))
    op.execute(of_0001("views", "CREATE VIEW fairlead.plan_history", "CREATE VIEW"))
    op.execute("DROP FUNCTION fairlead.check_four_eyes")
    op.drop_column("plan", "rolled_back_from", schema="fairlead")
    op.drop_column("plan", "four_eyes", schema="fairlead")


def of_0001(name: str, first: str, following: str | None = None) -> str:
    """Return a statement, with its comments, as the first revision has it."""
    _, found, rest = (SQL / f"0001_{name}.sql").read_text().partition(first)
    return found + (rest.partition(following)[0] if following else rest)
