"""Tables of what is measured over time: balance, adoption and lag.

Belongs here: history that only grows and may be pruned. Does not: plans (`plan`).

The lag of every partition is by far the most rows, so `partition_lag` is partitioned by the day,
and has no foreign keys: `record_lag` is its only writer.
"""

from datetime import datetime

from sqlalchemy import (
    CheckConstraint,
    ForeignKey,
    ForeignKeyConstraint,
    Identity,
    Index,
    Integer,
    UniqueConstraint,
    text,
)
from sqlalchemy.orm import Mapped, mapped_column

from fairlead.store.models.base import Base, MeasuredBalance, one_of
from fairlead.store.models.plan import ConsumerGroup


class Balance(MeasuredBalance, Base):
    """The balance of a group: as observed, as a plan predicted it, as the plan achieved it."""

    __tablename__ = "balance"
    __table_args__ = (
        ForeignKeyConstraint(
            ["group_id", "version"], ["fairlead_raw.plan.group_id", "fairlead_raw.plan.version"]
        ),
        CheckConstraint(one_of("kind", ("observed", "predicted", "achieved")), name="kind"),
        CheckConstraint("(kind = 'observed') = (version IS NULL)", name="version"),
        Index(
            "balance_observed_idx",
            "group_id",
            "snapshot_id",
            unique=True,
            postgresql_where=text("kind = 'observed'"),
        ),
        Index(
            "balance_predicted_idx",
            "group_id",
            "version",
            unique=True,
            postgresql_where=text("kind = 'predicted'"),
        ),
        Index(
            "balance_achieved_idx",
            "group_id",
            "version",
            "measured_at",
            unique=True,
            postgresql_where=text("kind = 'achieved'"),
        ),
        Index("balance_group_id_measured_at_idx", "group_id", "measured_at"),
        {"comment": "Balance of a group: observed, predicted by a plan, achieved by it."},
    )

    id: Mapped[int] = mapped_column(
        Identity(always=True), primary_key=True, comment="No meaning; the kinds have keys."
    )
    group_id: Mapped[str] = mapped_column(
        ForeignKey(ConsumerGroup.group_id), comment="The consumer group."
    )
    measured_at: Mapped[datetime] = mapped_column(comment="When the assignment was read.")
    kind: Mapped[str] = mapped_column(comment="observed, predicted or achieved.")
    version: Mapped[int | None] = mapped_column(
        Integer, comment="The plan that predicts or achieves it."
    )
    snapshot_id: Mapped[str] = mapped_column(comment="The snapshot whose lag was weighed.")


class PlanAdoption(Base):
    """How much of a published plan the group's consumers follow."""

    __tablename__ = "plan_adoption"
    __table_args__ = (
        ForeignKeyConstraint(
            ["group_id", "version"], ["fairlead_raw.plan.group_id", "fairlead_raw.plan.version"]
        ),
        CheckConstraint("as_planned BETWEEN 0 AND planned", name="as_planned"),
        {"comment": "How much of a published plan the group's consumers follow, by time."},
    )

    group_id: Mapped[str] = mapped_column(primary_key=True, comment="The consumer group.")
    version: Mapped[int] = mapped_column(Integer, primary_key=True, comment="The published plan.")
    observed_at: Mapped[datetime] = mapped_column(
        primary_key=True, comment="When the live assignment was read."
    )
    planned: Mapped[int] = mapped_column(comment="Partitions that the plan gives an owner.")
    as_planned: Mapped[int] = mapped_column(comment="Those that the planned member owns.")


class LagSnapshot(Base):
    """A snapshot whose lag rows are stored: what makes storing them idempotent."""

    __tablename__ = "lag_snapshot"
    __table_args__ = (
        UniqueConstraint("group_id", "snapshot_at"),
        Index("lag_snapshot_at_idx", "snapshot_at"),
        {"comment": "The snapshots of a group whose lag is in partition_lag."},
    )

    group_id: Mapped[str] = mapped_column(
        ForeignKey(ConsumerGroup.group_id), primary_key=True, comment="The consumer group."
    )
    snapshot_id: Mapped[str] = mapped_column(primary_key=True, comment="The snapshot.")
    snapshot_at: Mapped[datetime] = mapped_column(comment="When it was taken.")


class PartitionLag(Base):
    """The lag of one partition in one snapshot."""

    __tablename__ = "partition_lag"
    __table_args__ = (
        {
            "comment": "Lag of every partition in every snapshot of a group.",
            "postgresql_partition_by": "RANGE (snapshot_at)",
        },
    )

    group_id: Mapped[str] = mapped_column(primary_key=True, comment="The consumer group.")
    snapshot_at: Mapped[datetime] = mapped_column(
        primary_key=True, comment="When it was measured; names the lag_snapshot."
    )
    topic: Mapped[str] = mapped_column(primary_key=True, comment="The topic.")
    partition: Mapped[int] = mapped_column(Integer, primary_key=True, comment="The partition.")
    member: Mapped[str | None] = mapped_column(comment="Who owned it; null: nobody, or unknown.")
    begin_offset: Mapped[int | None] = mapped_column(comment="Log start offset.")
    end_offset: Mapped[int | None] = mapped_column(comment="Log end offset.")
    committed_offset: Mapped[int | None] = mapped_column(comment="Null: nothing committed.")
    lag: Mapped[int | None] = mapped_column(comment="Records behind, by KAFKA-5337's rule.")
    arrival_rate: Mapped[float | None] = mapped_column(comment="Records a second written.")
    consumption_rate: Mapped[float | None] = mapped_column(comment="Records a second consumed.")
    time_lag_s: Mapped[float | None] = mapped_column(comment="Seconds behind.")
    status: Mapped[str | None] = mapped_column(
        comment="OK, WARN, STALL, STOP, REWIND or DATA_LOSS."
    )
