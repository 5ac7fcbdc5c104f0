"""The first schema: plans and their life, decisions, balance and lag.

Revision 0001, from empty.
"""

from pathlib import Path
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

SCHEMA = "fairlead"
IN_A_STATE = (
    "state IN ('proposed', 'approved', 'published', 'superseded',"
    " 'rejected', 'expired', 'stale', 'retired')"
)
SQL = Path(__file__).parents[1] / "sql"


def upgrade() -> None:
    """Create tables, then what guards them, then what people query."""
    create_plan()
    create_decision()
    create_balance()
    create_lag()
    op.execute((SQL / "0001_life.sql").read_text())
    op.execute((SQL / "0001_views.sql").read_text())


def downgrade() -> None:
    """Drop everything, rows and all."""
    for view in ("plan_history", "plan_moves", "balance_history", "lag_history", "adoption"):
        op.execute(f"DROP VIEW {SCHEMA}.{view}")
    op.execute(f"DROP FUNCTION {SCHEMA}.approve_plan, {SCHEMA}.reject_plan")
    for table in (
        "partition_lag",
        "lag_snapshot",
        "plan_adoption",
        "balance",
        "candidate",
        "decision",
        "plan_move",
        "plan_event",
        "plan",
        "consumer_group",
    ):
        op.drop_table(table, schema=SCHEMA)
    for function in (
        "plan_event_apply",
        "plan_update",
        "plan_propose",
        "plan_insert",
        "lock_group",
        "refuse_change",
    ):
        op.execute(f"DROP FUNCTION {SCHEMA}.{function}")


def metrics() -> list[sa.Column[Any]]:
    """Return the columns of an assignment's metrics."""
    return [
        sa.Column(
            "count_min", sa.BigInteger(), nullable=True, comment="Fewest partitions of a member."
        ),
        sa.Column(
            "count_max", sa.BigInteger(), nullable=True, comment="Most partitions of a member."
        ),
        sa.Column(
            "balance_score",
            sa.Numeric(),
            nullable=True,
            comment="KIP-54: sum of the pairwise differences of partition counts; 0 is even.",
        ),
        sa.Column(
            "lag_max",
            sa.Numeric(),
            nullable=True,
            comment="Load of the heaviest member, in records.",
        ),
        sa.Column(
            "lag_mean", sa.Double(), nullable=True, comment="Load a member on average, in records."
        ),
        sa.Column(
            "lag_lower_bound",
            sa.Numeric(),
            nullable=True,
            comment="No assignment has a heaviest member lighter than this, in records.",
        ),
        sa.Column(
            "gap", sa.Double(), nullable=True, comment="How far lag_max is above its lower bound."
        ),
        sa.Column(
            "kept", sa.BigInteger(), nullable=True, comment="Partitions that stay with their owner."
        ),
        sa.Column(
            "moved",
            sa.BigInteger(),
            nullable=True,
            comment="Partitions taken from an owner that is present.",
        ),
        sa.Column(
            "placed",
            sa.BigInteger(),
            nullable=True,
            comment="Partitions without an owner, or whose owner is gone, that get one.",
        ),
    ]


def create_plan() -> None:
    """Create plans, the steps of their life, and what they move."""
    op.create_table(
        "consumer_group",
        sa.Column("group_id", sa.Text(), nullable=False, comment="Kafka's group.id."),
        sa.Column(
            "first_seen_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
            comment="When Fairlead first stored anything about the group.",
        ),
        sa.PrimaryKeyConstraint("group_id", name="consumer_group_pkey"),
        schema=SCHEMA,
        comment="Consumer groups ever observed; the row locks a group's plans.",
    )
    op.create_table(
        "plan",
        sa.Column("group_id", sa.Text(), nullable=False, comment="The consumer group."),
        sa.Column(
            "version",
            sa.Integer(),
            nullable=False,
            comment="Counts up per group from 1, without gaps.",
        ),
        sa.Column("plan_id", sa.Uuid(), nullable=False, comment="The plan's id in its document."),
        sa.Column(
            "state",
            sa.Text(),
            server_default="proposed",
            nullable=False,
            comment="Where the plan is in its life.",
        ),
        sa.Column(
            "assignor",
            sa.Text(),
            nullable=False,
            comment="The assignor whose candidate was chosen.",
        ),
        sa.Column(
            "reason", sa.Text(), nullable=False, comment="Why a plan, and why this candidate."
        ),
        sa.Column(
            "snapshot_id", sa.Text(), nullable=False, comment="The snapshot the plan was made from."
        ),
        sa.Column(
            "snapshot_at",
            sa.DateTime(timezone=True),
            nullable=False,
            comment="When that snapshot was taken.",
        ),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            nullable=False,
            comment="When the plan was proposed.",
        ),
        sa.Column(
            "expires_at",
            sa.DateTime(timezone=True),
            nullable=True,
            comment="Void from then on; null: never.",
        ),
        sa.Column(
            "document",
            sa.LargeBinary(),
            nullable=False,
            comment="The exact bytes that are published: JSON.",
        ),
        sa.Column(
            "sha256", sa.Text(), nullable=False, comment="SHA-256 of the document, in hexadecimal."
        ),
        sa.CheckConstraint(
            "sha256 = encode(sha256(document), 'hex')", name=op.f("plan_sha256_check")
        ),
        sa.CheckConstraint(
            IN_A_STATE,
            name=op.f("plan_state_check"),
        ),
        sa.CheckConstraint("version >= 1", name=op.f("plan_version_check")),
        sa.ForeignKeyConstraint(
            ["group_id"], ["fairlead.consumer_group.group_id"], name="plan_consumer_group_fkey"
        ),
        sa.PrimaryKeyConstraint("group_id", "version", name="plan_pkey"),
        sa.UniqueConstraint(
            "group_id", "version", "sha256", name="plan_group_id_version_sha256_key"
        ),
        sa.UniqueConstraint("plan_id", name="plan_plan_id_key"),
        schema=SCHEMA,
        comment="Every version of every group's plan. Only state changes, by a plan_event.",
    )
    op.create_index("plan_created_at_idx", "plan", ["created_at"], unique=False, schema=SCHEMA)
    op.create_index(
        "plan_one_open_idx",
        "plan",
        ["group_id"],
        unique=True,
        schema=SCHEMA,
        postgresql_where=sa.text("state IN ('proposed', 'approved')"),
    )
    op.create_index(
        "plan_one_published_idx",
        "plan",
        ["group_id"],
        unique=True,
        schema=SCHEMA,
        postgresql_where=sa.text("state = 'published'"),
    )
    op.create_table(
        "plan_event",
        sa.Column("group_id", sa.Text(), nullable=False, comment="The consumer group."),
        sa.Column("version", sa.Integer(), nullable=False, comment="The plan's version."),
        sa.Column(
            "state",
            sa.Text(),
            nullable=False,
            comment="The state the plan entered. Its life has no way back to one.",
        ),
        sa.Column(
            "at",
            sa.DateTime(timezone=True),
            server_default=sa.text("clock_timestamp()"),
            nullable=False,
            comment="When, by the database's clock.",
        ),
        sa.Column(
            "actor",
            sa.Text(),
            server_default=sa.text("SESSION_USER"),
            nullable=False,
            comment="Who, as the client says; else database_user.",
        ),
        sa.Column(
            "database_user",
            sa.Text(),
            server_default=sa.text("SESSION_USER"),
            nullable=False,
            comment="Who, as the database knows.",
        ),
        sa.Column("reason", sa.Text(), nullable=False, comment="Why."),
        sa.Column(
            "sha256",
            sa.Text(),
            nullable=False,
            comment="The document's hash, as the actor named it.",
        ),
        sa.Column("topic", sa.Text(), nullable=True, comment="Where it was published: topic."),
        sa.Column(
            "partition", sa.Integer(), nullable=True, comment="Where it was published: partition."
        ),
        sa.Column(
            "record_offset",
            sa.BigInteger(),
            nullable=True,
            comment="Where it was published: offset.",
        ),
        sa.CheckConstraint(
            "num_nonnulls(topic, partition, record_offset)"
            " = CASE WHEN state = 'published' THEN 3 ELSE 0 END",
            name=op.f("plan_event_position_check"),
        ),
        sa.CheckConstraint(
            IN_A_STATE,
            name=op.f("plan_event_state_check"),
        ),
        sa.ForeignKeyConstraint(
            ["group_id", "version", "sha256"],
            ["fairlead.plan.group_id", "fairlead.plan.version", "fairlead.plan.sha256"],
            name="plan_event_plan_fkey",
        ),
        sa.PrimaryKeyConstraint("group_id", "version", "state", name="plan_event_pkey"),
        schema=SCHEMA,
        comment="Append-only: who took which plan to which state, when and why.",
    )
    op.create_index("plan_event_at_idx", "plan_event", ["at"], unique=False, schema=SCHEMA)
    op.create_table(
        "plan_move",
        sa.Column("group_id", sa.Text(), nullable=False, comment="The consumer group."),
        sa.Column("version", sa.Integer(), nullable=False, comment="The plan's version."),
        sa.Column("topic", sa.Text(), nullable=False, comment="The topic."),
        sa.Column("partition", sa.Integer(), nullable=False, comment="The partition."),
        sa.Column(
            "previous_member",
            sa.Text(),
            nullable=True,
            comment="The owner in the snapshot; null: none.",
        ),
        sa.Column("member", sa.Text(), nullable=True, comment="The owner in the plan; null: none."),
        sa.Column("weight", sa.Double(), nullable=True, comment="The load that moves, in records."),
        sa.Column("reason", sa.Text(), nullable=True, comment="Why the assignor moves it."),
        sa.CheckConstraint(
            "previous_member IS DISTINCT FROM member", name=op.f("plan_move_moves_check")
        ),
        sa.ForeignKeyConstraint(
            ["group_id", "version"],
            ["fairlead.plan.group_id", "fairlead.plan.version"],
            name="plan_move_plan_fkey",
        ),
        sa.PrimaryKeyConstraint("group_id", "version", "topic", "partition", name="plan_move_pkey"),
        schema=SCHEMA,
        comment="The partitions whose owner a plan changes.",
    )


def create_decision() -> None:
    """Create what each snapshot of a group came to."""
    op.create_table(
        "decision",
        sa.Column("group_id", sa.Text(), nullable=False, comment="The consumer group."),
        sa.Column("snapshot_id", sa.Text(), nullable=False, comment="The snapshot decided on."),
        sa.Column(
            "snapshot_at",
            sa.DateTime(timezone=True),
            nullable=False,
            comment="When that snapshot was taken.",
        ),
        sa.Column(
            "decided_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
            comment="When the decision was stored.",
        ),
        sa.Column("outcome", sa.Text(), nullable=False, comment="plan, no change, or failed."),
        sa.Column("reason", sa.Text(), nullable=False, comment="Why, in words."),
        sa.Column("version", sa.Integer(), nullable=True, comment="The plan proposed, if any."),
        sa.CheckConstraint(
            "(outcome = 'plan') = (version IS NOT NULL)", name=op.f("decision_version_check")
        ),
        sa.CheckConstraint(
            "outcome IN ('plan', 'no change', 'failed')", name=op.f("decision_outcome_check")
        ),
        sa.ForeignKeyConstraint(
            ["group_id", "version"],
            ["fairlead.plan.group_id", "fairlead.plan.version"],
            name="decision_plan_fkey",
        ),
        sa.ForeignKeyConstraint(
            ["group_id"], ["fairlead.consumer_group.group_id"], name="decision_consumer_group_fkey"
        ),
        sa.PrimaryKeyConstraint("group_id", "snapshot_id", name="decision_pkey"),
        schema=SCHEMA,
        comment="What each snapshot of a group came to, even where nothing was changed.",
    )
    op.create_index(
        "decision_group_id_decided_at_idx",
        "decision",
        ["group_id", "decided_at"],
        unique=False,
        schema=SCHEMA,
    )
    op.create_table(
        "candidate",
        sa.Column("group_id", sa.Text(), nullable=False, comment="The consumer group."),
        sa.Column("snapshot_id", sa.Text(), nullable=False, comment="The snapshot."),
        sa.Column("assignor", sa.Text(), nullable=False, comment="The assignor's name."),
        sa.Column(
            "outcome", sa.Text(), nullable=True, comment="What the assignor says of its result."
        ),
        sa.Column("error", sa.Text(), nullable=True, comment="Why it gave no assignment."),
        *metrics(),
        sa.ForeignKeyConstraint(
            ["group_id", "snapshot_id"],
            ["fairlead.decision.group_id", "fairlead.decision.snapshot_id"],
            name="candidate_decision_fkey",
        ),
        sa.PrimaryKeyConstraint("group_id", "snapshot_id", "assignor", name="candidate_pkey"),
        schema=SCHEMA,
        comment="What each assignor of the policy would have done with a snapshot.",
    )


def create_balance() -> None:
    """Create how evenly work was spread, and how plans are followed."""
    op.create_table(
        "balance",
        sa.Column(
            "id",
            sa.BigInteger(),
            sa.Identity(always=True),
            nullable=False,
            comment="No meaning; the kinds have keys.",
        ),
        sa.Column("group_id", sa.Text(), nullable=False, comment="The consumer group."),
        sa.Column(
            "measured_at",
            sa.DateTime(timezone=True),
            nullable=False,
            comment="When the assignment was read.",
        ),
        sa.Column("kind", sa.Text(), nullable=False, comment="observed, predicted or achieved."),
        sa.Column(
            "version", sa.Integer(), nullable=True, comment="The plan that predicts or achieves it."
        ),
        sa.Column(
            "snapshot_id", sa.Text(), nullable=False, comment="The snapshot whose lag was weighed."
        ),
        *metrics(),
        sa.CheckConstraint(
            "(kind = 'observed') = (version IS NULL)", name=op.f("balance_version_check")
        ),
        sa.CheckConstraint(
            "kind IN ('observed', 'predicted', 'achieved')", name=op.f("balance_kind_check")
        ),
        sa.ForeignKeyConstraint(
            ["group_id", "version"],
            ["fairlead.plan.group_id", "fairlead.plan.version"],
            name="balance_plan_fkey",
        ),
        sa.ForeignKeyConstraint(
            ["group_id"], ["fairlead.consumer_group.group_id"], name="balance_consumer_group_fkey"
        ),
        sa.PrimaryKeyConstraint("id", name="balance_pkey"),
        schema=SCHEMA,
        comment="Balance of a group: observed, predicted by a plan, achieved by it.",
    )
    op.create_index(
        "balance_achieved_idx",
        "balance",
        ["group_id", "version", "measured_at"],
        unique=True,
        schema=SCHEMA,
        postgresql_where=sa.text("kind = 'achieved'"),
    )
    op.create_index(
        "balance_group_id_measured_at_idx",
        "balance",
        ["group_id", "measured_at"],
        unique=False,
        schema=SCHEMA,
    )
    op.create_index(
        "balance_observed_idx",
        "balance",
        ["group_id", "snapshot_id"],
        unique=True,
        schema=SCHEMA,
        postgresql_where=sa.text("kind = 'observed'"),
    )
    op.create_index(
        "balance_predicted_idx",
        "balance",
        ["group_id", "version"],
        unique=True,
        schema=SCHEMA,
        postgresql_where=sa.text("kind = 'predicted'"),
    )
    op.create_table(
        "plan_adoption",
        sa.Column("group_id", sa.Text(), nullable=False, comment="The consumer group."),
        sa.Column("version", sa.Integer(), nullable=False, comment="The published plan."),
        sa.Column(
            "observed_at",
            sa.DateTime(timezone=True),
            nullable=False,
            comment="When the live assignment was read.",
        ),
        sa.Column(
            "planned",
            sa.BigInteger(),
            nullable=False,
            comment="Partitions that the plan gives an owner.",
        ),
        sa.Column(
            "as_planned",
            sa.BigInteger(),
            nullable=False,
            comment="Those that the planned member owns.",
        ),
        sa.CheckConstraint(
            "as_planned BETWEEN 0 AND planned", name=op.f("plan_adoption_as_planned_check")
        ),
        sa.ForeignKeyConstraint(
            ["group_id", "version"],
            ["fairlead.plan.group_id", "fairlead.plan.version"],
            name="plan_adoption_plan_fkey",
        ),
        sa.PrimaryKeyConstraint("group_id", "version", "observed_at", name="plan_adoption_pkey"),
        schema=SCHEMA,
        comment="How much of a published plan the group's consumers follow, by time.",
    )


def create_lag() -> None:
    """Create the history of lag."""
    op.create_table(
        "lag_snapshot",
        sa.Column("group_id", sa.Text(), nullable=False, comment="The consumer group."),
        sa.Column("snapshot_id", sa.Text(), nullable=False, comment="The snapshot."),
        sa.Column(
            "snapshot_at", sa.DateTime(timezone=True), nullable=False, comment="When it was taken."
        ),
        sa.ForeignKeyConstraint(
            ["group_id"],
            ["fairlead.consumer_group.group_id"],
            name="lag_snapshot_consumer_group_fkey",
        ),
        sa.PrimaryKeyConstraint("group_id", "snapshot_id", name="lag_snapshot_pkey"),
        sa.UniqueConstraint(
            "group_id", "snapshot_at", name="lag_snapshot_group_id_snapshot_at_key"
        ),
        schema=SCHEMA,
        comment="The snapshots of a group whose lag is in partition_lag.",
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
        schema=SCHEMA,
        comment="Lag of every partition in every snapshot of a group.",
    )
