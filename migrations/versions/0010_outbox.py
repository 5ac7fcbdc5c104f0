"""An outbox: what is about to be sent to the plan topic is committed before it is.

Revision 0010, from 0009. Going back keeps the steps of plans that were on their way, in states that
no new row can have; it forgets what is on its way now: publish, or wait for it, before.
"""

import re
from pathlib import Path

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

SQL = Path(__file__).parents[1] / "sql"
BEFORE = (
    "proposed",
    "approved",
    "published",
    "superseded",
    "rejected",
    "expired",
    "stale",
    "retired",
)
AFTER = (
    "proposed",
    "approved",
    "sending",
    "published",
    "superseded",
    "rejected",
    "expired",
    "stale",
    "refused",
    "retired",
)
READERS = "fairlead_planner, fairlead_approver, fairlead_reader"


#: Functions that people call stay where they call them.
CALLED = "approve_plan|reject_plan|plan_diff|plan_owners|lag_days|prune_lag"


def as_moved(sql: str) -> str:
    """Return what earlier revisions have created, by the names that the eighth has given it."""
    return re.sub(rf"\bfairlead\.(?!({CALLED})\b)", "fairlead_raw.", sql).replace(
        "'fairlead'::regnamespace", "'fairlead_raw'::regnamespace"
    )


def upgrade() -> None:
    """Create the tables, widen the states, replace what guards a plan's life."""
    set_states(AFTER)
    op.create_index(
        "plan_one_sending_idx",
        "plan",
        ["group_id"],
        unique=True,
        schema="fairlead_raw",
        postgresql_where=sa.text("state = 'sending'"),
    )
    create_tables()
    op.execute((SQL / "0010_life.sql").read_text())
    for table in ("plan_intent", "plan_partition"):
        op.execute(f"GRANT SELECT ON fairlead_raw.{table} TO {READERS}")
    op.execute("GRANT INSERT, UPDATE, DELETE ON fairlead_raw.plan_intent TO fairlead_planner")


def downgrade() -> None:
    """Drop the tables, and make functions and states what the ninth revision has."""
    op.execute("DROP FUNCTION fairlead_raw.lock_partition, fairlead_raw.partition_turn")
    op.drop_table("plan_intent", schema="fairlead_raw")
    op.drop_table("plan_partition", schema="fairlead_raw")
    op.drop_index("plan_one_sending_idx", "plan", schema="fairlead_raw")
    set_states(BEFORE, not_valid=True)
    life = (SQL / "0004_life.sql").read_text()
    op.execute(as_moved(life.partition("-- Whoever writes runs these")[0]))


def set_states(states: tuple[str, ...], *, not_valid: bool = False) -> None:
    """Let plans and their events have these states; not valid: new rows alone."""
    condition = f"state IN ({', '.join(map(repr, states))})"
    for table in ("plan", "plan_event"):
        name = op.f(f"{table}_state_check")
        op.drop_constraint(name, table, schema="fairlead_raw")
        op.create_check_constraint(
            name, table, condition, schema="fairlead_raw", postgresql_not_valid=not_valid
        )


def create_tables() -> None:
    """Create what is on its way, and the partitions' locks."""
    time = sa.DateTime(timezone=True)
    op.create_table(
        "plan_intent",
        sa.Column("group_id", sa.Text(), nullable=False, comment="The consumer group."),
        sa.Column("kind", sa.Text(), nullable=False, comment="plan or retired."),
        sa.Column(
            "version", sa.Integer(), nullable=False, comment="The version that is told or retired."
        ),
        sa.Column(
            "epoch",
            sa.BigInteger(),
            nullable=False,
            comment="Of the group's versions; followers ignore lower ones.",
        ),
        sa.Column(
            "lease_until",
            time,
            nullable=True,
            comment="When the plan lapses unless it is told again; null: it is retired.",
        ),
        sa.Column("actor", sa.Text(), nullable=True, comment="Who asks for it; null: the planner."),
        sa.Column("reason", sa.Text(), nullable=True, comment="Why it is retired."),
        sa.Column(
            "at",
            time,
            server_default=sa.text("now()"),
            nullable=False,
            comment="Since when it is on its way, by the database's clock.",
        ),
        sa.CheckConstraint("kind IN ('plan', 'retired')", name=op.f("plan_intent_kind_check")),
        sa.CheckConstraint("epoch > 0", name=op.f("plan_intent_epoch_check")),
        sa.ForeignKeyConstraint(
            ["group_id", "version"],
            ["fairlead_raw.plan.group_id", "fairlead_raw.plan.version"],
            name="plan_intent_plan_fkey",
        ),
        sa.PrimaryKeyConstraint("group_id", name="plan_intent_pkey"),
        schema="fairlead_raw",
        comment="What is on its way to the plan topic: committed before it is sent.",
    )
    op.create_table(
        "plan_partition",
        sa.Column("topic", sa.Text(), nullable=False, comment="The plan topic."),
        sa.Column("partition", sa.Integer(), nullable=False, comment="Its partition."),
        sa.Column("taken_at", time, nullable=True, comment="When somebody last sent to it."),
        sa.Column("taken_by", sa.Text(), nullable=True, comment="Who, as the database knows."),
        sa.Column(
            "turn",
            sa.BigInteger(),
            server_default=sa.text("0"),
            nullable=False,
            comment="How often it was taken: says whether somebody else had it since.",
        ),
        sa.PrimaryKeyConstraint("topic", "partition", name="plan_partition_pkey"),
        schema="fairlead_raw",
        comment="The partitions of the plan topic; the row locks one for a sender.",
    )
