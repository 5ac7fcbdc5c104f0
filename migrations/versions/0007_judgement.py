"""What is known of members' speeds, what is the matter with groups, and how late they will be.

Revision 0007, from 0006. Balances and candidates stored before have no forecast; going back forgets
forecasts, speeds and diagnoses.
"""

from pathlib import Path

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import ARRAY

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

SCHEMA = "fairlead"
SQL = Path(__file__).parents[1] / "sql"
DIAGNOSES = (
    "diagnosis IN ('healthy', 'recovering', 'badly spread', 'slow member', 'overloaded',"
    " 'hot partition', 'stuck partition', 'unknown')"
)
LATE = "Seconds the worst partition is forecast to be behind at the policy's horizon."
UTILISATION = "Share of what it can do that the fullest member gets: above 1 it falls behind."
READERS = "fairlead_planner, fairlead_approver, fairlead_reader"


def upgrade() -> None:
    """Add columns and tables, then who writes them and what people query."""
    for table in ("balance", "candidate"):
        for name, comment in (("late_s", LATE), ("utilisation", UTILISATION)):
            op.add_column(
                table, sa.Column(name, sa.Double(), nullable=True, comment=comment), schema=SCHEMA
            )
    create_capacity()
    create_diagnosis()
    op.execute((SQL / "0007_judgement.sql").read_text())


def downgrade() -> None:
    """Drop what was added, and make the views what they were."""
    op.execute("DROP VIEW fairlead.diagnosis, fairlead.diagnosis_history")
    op.execute("DROP FUNCTION fairlead.record_capacities, fairlead.record_diagnoses")
    for table in ("group_diagnosis", "member_capacity"):
        op.drop_table(table, schema=SCHEMA)
    op.execute("DROP VIEW fairlead.balance_history")
    before = (SQL / "0001_views.sql").read_text()
    _, balance, rest = before.partition("CREATE VIEW fairlead.balance_history")
    op.execute(balance + rest.partition("CREATE VIEW")[0])
    op.execute((SQL / "0003_views.sql").read_text())  # begins by dropping plan_history
    op.execute((SQL / "0004_views.sql").read_text())
    for view in ("plan_history", "balance_history"):
        op.execute(f"GRANT SELECT ON fairlead.{view} TO {READERS}")
    for table in ("balance", "candidate"):
        for name in ("utilisation", "late_s"):
            op.drop_column(table, name, schema=SCHEMA)


def create_capacity() -> None:
    """Create what is known of members' speeds."""
    op.create_table(
        "member_capacity",
        sa.Column("group_id", sa.Text(), nullable=False, comment="The consumer group."),
        sa.Column("member", sa.Text(), nullable=False, comment="The member's name in plans."),
        sa.Column(
            "records_per_s",
            sa.Double(),
            nullable=False,
            comment="Records a second it can do, or can do at least.",
        ),
        sa.Column(
            "measured",
            sa.Boolean(),
            nullable=False,
            comment="Whether it was at its limit: else it can do at least so much.",
        ),
        sa.Column(
            "measured_at",
            sa.DateTime(timezone=True),
            nullable=False,
            comment="When that was seen.",
        ),
        sa.Column("evidence", sa.Text(), nullable=False, comment="What it was seen by."),
        sa.CheckConstraint("records_per_s >= 0", name=op.f("member_capacity_records_per_s_check")),
        sa.ForeignKeyConstraint(
            ["group_id"],
            ["fairlead.consumer_group.group_id"],
            name="member_capacity_consumer_group_fkey",
        ),
        sa.PrimaryKeyConstraint("group_id", "member", name="member_capacity_pkey"),
        schema=SCHEMA,
        comment="How fast members are, as last seen: what forecasts count with.",
    )


def create_diagnosis() -> None:
    """Create what is the matter with groups, from when to when."""
    op.create_table(
        "group_diagnosis",
        sa.Column("group_id", sa.Text(), nullable=False, comment="The consumer group."),
        sa.Column(
            "since", sa.DateTime(timezone=True), nullable=False, comment="When it was first seen."
        ),
        sa.Column(
            "until",
            sa.DateTime(timezone=True),
            nullable=True,
            comment="When something else was seen; null: it holds still.",
        ),
        sa.Column(
            "last_seen",
            sa.DateTime(timezone=True),
            nullable=False,
            comment="When it was last seen.",
        ),
        sa.Column("diagnosis", sa.Text(), nullable=False, comment="What is the matter."),
        sa.Column(
            "names",
            ARRAY(sa.Text()),
            nullable=False,
            comment="The members, or topic-partition, that it is about.",
        ),
        sa.Column(
            "evidence", sa.Text(), nullable=False, comment="By what, in a sentence, as last seen."
        ),
        sa.Column("late_s", sa.Double(), nullable=True, comment=LATE),
        sa.Column("utilisation", sa.Double(), nullable=True, comment=UTILISATION),
        sa.CheckConstraint(DIAGNOSES, name=op.f("group_diagnosis_diagnosis_check")),
        sa.CheckConstraint(
            "since <= last_seen AND last_seen < coalesce(until, 'infinity')",
            name=op.f("group_diagnosis_times_check"),
        ),
        sa.ForeignKeyConstraint(
            ["group_id"],
            ["fairlead.consumer_group.group_id"],
            name="group_diagnosis_consumer_group_fkey",
        ),
        sa.PrimaryKeyConstraint("group_id", "since", name="group_diagnosis_pkey"),
        schema=SCHEMA,
        comment="What was the matter with each group; a row where that changed.",
    )
    op.create_index(
        "group_diagnosis_now_idx",
        "group_diagnosis",
        ["group_id"],
        unique=True,
        schema=SCHEMA,
        postgresql_where=sa.text("until IS NULL"),
    )
