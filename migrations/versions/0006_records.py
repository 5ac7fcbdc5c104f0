"""What stands in the plan topic under each group's key: epoch, lease, and where.

Revision 0006, from 0005. Plans that are published have no row yet: the next run tells their groups
of them again, with a lease. Going back forgets the rows.
"""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the table, and who may write it."""
    time = sa.DateTime(timezone=True)
    op.create_table(
        "plan_record",
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
        sa.Column("topic", sa.Text(), nullable=False, comment="The plan topic."),
        sa.Column("partition", sa.Integer(), nullable=False, comment="Its partition."),
        sa.Column("record_offset", sa.BigInteger(), nullable=False, comment="The offset there."),
        sa.Column(
            "at",
            time,
            server_default=sa.text("now()"),
            nullable=False,
            comment="When it was sent, by the database's clock.",
        ),
        sa.CheckConstraint("kind IN ('plan', 'retired')", name=op.f("plan_record_kind_check")),
        sa.CheckConstraint("epoch > 0", name=op.f("plan_record_epoch_check")),
        sa.CheckConstraint(
            "(kind = 'plan') = (lease_until IS NOT NULL)", name=op.f("plan_record_lease_check")
        ),
        sa.ForeignKeyConstraint(
            ["group_id", "version"],
            ["fairlead.plan.group_id", "fairlead.plan.version"],
            name="plan_record_plan_fkey",
        ),
        sa.PrimaryKeyConstraint("group_id", name="plan_record_pkey"),
        schema="fairlead",
        comment="The newest record of each group in the plan topic, as it was sent.",
    )
    op.execute(
        "GRANT SELECT ON fairlead.plan_record"
        " TO fairlead_planner, fairlead_approver, fairlead_reader"
    )
    op.execute("GRANT INSERT, UPDATE ON fairlead.plan_record TO fairlead_planner")


def downgrade() -> None:
    """Drop the table."""
    op.drop_table("plan_record", schema="fairlead")
