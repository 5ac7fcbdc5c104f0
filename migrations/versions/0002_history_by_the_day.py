"""Lag by the day: a native partition a day, and the owner of each partition beside its lag.

Revision 0002, from 0001. Rows are carried over both ways; going back, the owners are lost.
"""

from pathlib import Path
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

SQL = Path(__file__).parents[1] / "sql"
KEPT = (
    "group_id, snapshot_at, topic, partition, begin_offset, end_offset, committed_offset, lag,"
    " arrival_rate, consumption_rate, time_lag_s, status"
)
VIEW_OF_0001 = """
    CREATE VIEW fairlead.lag_history AS
    SELECT lag.group_id, lag.snapshot_at, snapshot.snapshot_id, lag.topic, lag.partition,
           lag.begin_offset, lag.end_offset, lag.committed_offset, lag.lag, lag.arrival_rate,
           lag.consumption_rate, lag.time_lag_s, lag.status
    FROM fairlead.partition_lag lag
    JOIN fairlead.lag_snapshot snapshot USING (group_id, snapshot_at);
    COMMENT ON VIEW fairlead.lag_history IS 'Lag of every partition in every snapshot.';
"""


def upgrade() -> None:
    """Make the partitioned table, carry the rows over, then drop the old one."""
    op.execute("DROP VIEW fairlead.lag_history")
    set_aside()
    create_partition_lag(owner=True, postgresql_partition_by="RANGE (snapshot_at)")
    op.execute((SQL / "0002_history.sql").read_text())
    op.execute(
        "SELECT fairlead.ensure_lag_day(day)"
        " FROM (SELECT DISTINCT (snapshot_at AT TIME ZONE 'UTC')::date AS day"
        "       FROM fairlead.partition_lag_before) days"
    )
    carry_over()
    op.create_index("lag_snapshot_at_idx", "lag_snapshot", ["snapshot_at"], schema="fairlead")


def downgrade() -> None:
    """Make the plain table again, and carry the rows back."""
    op.drop_index("lag_snapshot_at_idx", "lag_snapshot", schema="fairlead")
    op.execute("DROP VIEW fairlead.lag_history")
    op.execute("DROP FUNCTION fairlead.prune_lag, fairlead.lag_days, fairlead.ensure_lag_day")
    set_aside()
    create_partition_lag(owner=False)
    carry_over()
    op.execute(VIEW_OF_0001)


def set_aside() -> None:
    """Free the table's name and its key's."""
    op.rename_table("partition_lag", "partition_lag_before", schema="fairlead")
    op.execute("ALTER INDEX fairlead.partition_lag_pkey RENAME TO partition_lag_before_pkey")


def carry_over() -> None:
    """Copy the rows from the table that was set aside, and drop that."""
    op.execute(
        f"INSERT INTO fairlead.partition_lag ({KEPT})"  # noqa: S608 - column names
        f" SELECT {KEPT} FROM fairlead.partition_lag_before"
    )
    op.drop_table("partition_lag_before", schema="fairlead")


def create_partition_lag(*, owner: bool, **dialect: Any) -> None:
    """Create the table, with or without the owner of each partition."""
    member = sa.Column(
        "member",
        sa.Text(),
        nullable=True,
        comment="Who owned it; null: nobody, or unknown.",
    )
    op.create_table(
        "partition_lag",
        sa.Column("group_id", sa.Text(), nullable=False, comment="The consumer group."),
        sa.Column(
            "snapshot_at",
            sa.DateTime(timezone=True),
            nullable=False,
            comment="When it was measured; names the lag_snapshot.",
        ),
        sa.Column("topic", sa.Text(), nullable=False, comment="The topic."),
        sa.Column("partition", sa.Integer(), nullable=False, comment="The partition."),
        *([member] if owner else []),
        sa.Column("begin_offset", sa.BigInteger(), nullable=True, comment="Log start offset."),
        sa.Column("end_offset", sa.BigInteger(), nullable=True, comment="Log end offset."),
        sa.Column(
            "committed_offset", sa.BigInteger(), nullable=True, comment="Null: nothing committed."
        ),
        sa.Column(
            "lag", sa.BigInteger(), nullable=True, comment="Records behind, by KAFKA-5337's rule."
        ),
        sa.Column("arrival_rate", sa.Double(), nullable=True, comment="Records a second written."),
        sa.Column(
            "consumption_rate", sa.Double(), nullable=True, comment="Records a second consumed."
        ),
        sa.Column("time_lag_s", sa.Double(), nullable=True, comment="Seconds behind."),
        sa.Column(
            "status",
            sa.Text(),
            nullable=True,
            comment="OK, WARN, STALL, STOP, REWIND or DATA_LOSS.",
        ),
        sa.PrimaryKeyConstraint(
            "group_id", "snapshot_at", "topic", "partition", name="partition_lag_pkey"
        ),
        schema="fairlead",
        comment="Lag of every partition in every snapshot of a group.",
        **dialect,
    )
