"""Tables of measurements over time: balance, adoption and lag, and their summaries.

Belongs here: history that grows with every sample and is pruned. Belongs elsewhere: plans (`plan`).

Histories are partitioned by day. They have no foreign keys, since dropping a day would lock the
referenced table. `PlanStore` is their only writer. Triggers update the summaries
(`migrations/sql/history.sql`).
"""

from datetime import date, datetime
from decimal import Decimal
from typing import Annotated, Final

from sqlalchemy import (
    ARRAY,
    REAL,
    CheckConstraint,
    Index,
    Integer,
    PrimaryKeyConstraint,
    SmallInteger,
    Text,
    UniqueConstraint,
    text,
)
from sqlalchemy.orm import Mapped, mapped_column

from fairlead.store.models.base import Base, Int32, MeasuredBalance, one_of
from fairlead.store.models.plan import KnownGroup, of_plan

#: Kinds of a balance: measured in a snapshot, or predicted for a plan.
KINDS: Final = ("observed", "predicted")
Count = Annotated[int, mapped_column(Integer, server_default=text("0"))]


class Balance(MeasuredBalance, Base):
    """History of each group's balance: as observed, and as predicted by plans."""

    __tablename__ = "balance"
    __table_args__ = (
        CheckConstraint(one_of("kind", KINDS), name="kind"),
        CheckConstraint("(kind = 'observed') = (version IS NULL)", name="version"),
        {"postgresql_partition_by": "RANGE (measured_at)"},
    )

    group_id: Mapped[str] = mapped_column(primary_key=True, comment="The consumer group.")
    measured_at: Mapped[datetime] = mapped_column(
        primary_key=True, comment="When the assignment was read."
    )
    kind: Mapped[str] = mapped_column(primary_key=True, comment="observed or predicted.")
    version: Mapped[Int32 | None] = mapped_column(comment="The plan that predicts this balance.")
    snapshot_id: Mapped[str] = mapped_column(
        primary_key=True, comment="The snapshot whose lag was used."
    )


class PlanBalance(MeasuredBalance, Base):
    """Balance for each plan: before the plan, predicted, and last measured under the plan."""

    __tablename__ = "plan_balance"
    __table_args__ = (
        PrimaryKeyConstraint("group_id", "version", "kind"),
        of_plan(),
        CheckConstraint(one_of("kind", (*KINDS, "achieved")), name="kind"),
    )

    group_id: Mapped[str] = mapped_column(comment="The consumer group.")
    measured_at: Mapped[datetime] = mapped_column(comment="When the assignment was read.")
    kind: Mapped[str] = mapped_column(comment="observed, predicted or achieved.")
    version: Mapped[Int32] = mapped_column(comment="The plan.")
    snapshot_id: Mapped[str] = mapped_column(comment="The snapshot whose lag was used.")


class _Adoption:
    """Adherence to a plan."""

    group_id: Mapped[str] = mapped_column(comment="The consumer group.")
    version: Mapped[Int32] = mapped_column(comment="The published plan.")
    observed_at: Mapped[datetime] = mapped_column(comment="When the live assignment was read.")
    planned: Mapped[int] = mapped_column(
        comment="Partitions to which the plan, fitted to the members, gives an owner."
    )
    as_planned: Mapped[int] = mapped_column(comment="Partitions that their planned member owned.")
    adherence: Mapped[Decimal | None]


class PlanAdoption(_Adoption, Base):
    """History of each group's adherence to its published plan."""

    __tablename__ = "plan_adoption"
    __table_args__ = (
        PrimaryKeyConstraint("group_id", "observed_at", "version"),
        CheckConstraint("as_planned BETWEEN 0 AND planned", name="as_planned"),
        {"postgresql_partition_by": "RANGE (observed_at)"},
    )


class LastAdoption(_Adoption, Base):
    """Last measurement of the adherence to each plan; kept as long as the plan."""

    __tablename__ = "last_adoption"
    __table_args__ = (PrimaryKeyConstraint("group_id", "version"), of_plan())


class GroupDay(Base):
    """Daily summary of each group: numbers of decisions and rebalances, worst balance, forecast."""

    __tablename__ = "group_day"
    __table_args__ = (
        Index("group_day_day_idx", "day"),
        {
            # Leave space in pages, so that a row stays on its page when a sample updates the row.
            "postgresql_with": {"fillfactor": 60},
        },
    )

    group_id: Mapped[str] = mapped_column(primary_key=True, comment="The consumer group.")
    day: Mapped[date] = mapped_column(primary_key=True, comment="The day (UTC) of the snapshots.")
    plans: Mapped[Count] = mapped_column(comment="Decisions that proposed a plan.")
    no_changes: Mapped[Count] = mapped_column(comment="Decisions to change nothing.")
    failures: Mapped[Count] = mapped_column(comment="Decisions that failed.")
    imbalance_worst: Mapped[Decimal | None]
    lag_max_worst: Mapped[Decimal | None]
    forecast_time_lag_s_worst: Mapped[float | None]
    rebalances: Mapped[Count]


class _Sample:
    """A sample of a group."""

    digest: Mapped[int] = mapped_column(
        comment="Hash of topics, counts, members and owner; it changes when one of them changes."
    )
    forecast_time_lag_s: Mapped[float | None]
    utilisation: Mapped[float | None]
    group_type: Mapped[str] = mapped_column(comment="classic or consumer, as Kafka reports.")
    protocol: Mapped[str] = mapped_column(comment="The assignor's name, as Kafka reports.")
    topics: Mapped[list[str]] = mapped_column(ARRAY(Text), comment="Topics that members read.")
    counts: Mapped[list[int]] = mapped_column(
        ARRAY(Integer),
        comment="Number of partitions of each topic. The arrays owner, lag, arrival_rate, behind_s "
        "and capacity_share contain the partitions of the first topic, then those of the second, "
        "and so on.",
    )
    members: Mapped[list[str]] = mapped_column(ARRAY(Text), comment="The members.")
    owner: Mapped[list[int]] = mapped_column(
        ARRAY(SmallInteger),
        comment="Position of each partition's owner in members, from 0; -1 if there is no owner.",
    )
    lag: Mapped[list[float]] = mapped_column(ARRAY(REAL))
    arrival_rate: Mapped[list[float]] = mapped_column(ARRAY(REAL))
    behind_s: Mapped[list[float]] = mapped_column(
        ARRAY(REAL), comment="Age of the next record to read, in seconds."
    )
    capacity_share: Mapped[list[float]] = mapped_column(ARRAY(REAL))


class GroupSample(_Sample, Base):
    """Samples of groups: every quarter of an hour, and after changes of owners or members."""

    __tablename__ = "group_sample"
    __table_args__ = ({"postgresql_partition_by": "RANGE (sampled_at)"},)

    group_id: Mapped[str] = mapped_column(primary_key=True, comment="The consumer group.")
    sampled_at: Mapped[datetime] = mapped_column(primary_key=True, comment="Time of the sample.")


class GroupSampleLast(_Sample, Base):
    """The last sample of each group; each sample replaces the group's row."""

    __tablename__ = "group_sample_last"

    group_id: Mapped[KnownGroup]
    sampled_at: Mapped[datetime] = mapped_column(comment="When the group was sampled.")


class LastSample(Base):
    """Time when all groups were last sampled; one row."""

    __tablename__ = "last_sample"
    __table_args__ = (CheckConstraint("single", name="single"),)

    single: Mapped[bool] = mapped_column(
        primary_key=True, comment="Always true: limits the table to one row."
    )
    sampled_at: Mapped[datetime] = mapped_column(comment="When the sample began.")
    interval_s: Mapped[float] = mapped_column(
        comment="Seconds from the beginning of that sample to the beginning of the next."
    )


class LagSnapshot(Base):
    """Each group's snapshots whose lag is stored in partition_lag."""

    __tablename__ = "lag_snapshot"
    __table_args__ = (
        UniqueConstraint("group_id", "snapshot_at"),
        Index("lag_snapshot_at_idx", "snapshot_at"),
    )

    group_id: Mapped[KnownGroup]
    snapshot_id: Mapped[str] = mapped_column(primary_key=True, comment="The snapshot.")
    snapshot_at: Mapped[datetime] = mapped_column(comment="When the snapshot was taken.")


class PartitionLagRow(Base):
    """Lag of every partition in every snapshot of a group."""

    __tablename__ = "partition_lag"
    __table_args__ = ({"postgresql_partition_by": "RANGE (snapshot_at)"},)

    group_id: Mapped[str] = mapped_column(primary_key=True, comment="The consumer group.")
    snapshot_at: Mapped[datetime] = mapped_column(
        primary_key=True, comment="When the lag was measured; key of lag_snapshot."
    )
    topic: Mapped[str] = mapped_column(primary_key=True, comment="The topic.")
    partition: Mapped[Int32] = mapped_column(primary_key=True, comment="The partition.")
    member: Mapped[str | None] = mapped_column(
        comment="The owner; null if there is none, or if it is unknown."
    )
    begin_offset: Mapped[int | None] = mapped_column(comment="Log start offset.")
    end_offset: Mapped[int | None] = mapped_column(comment="Log end offset.")
    committed_offset: Mapped[int | None] = mapped_column(
        comment="The committed offset; null if there is none."
    )
    lag: Mapped[int | None]
    lost: Mapped[int | None]
    lost_at: Mapped[datetime | None] = mapped_column(
        comment="When a sample first showed the loss; null if nothing was lost."
    )
    arrival_rate: Mapped[float | None]
    consumption_rate: Mapped[float | None]
    time_lag_s: Mapped[float | None]
    status: Mapped[str | None] = mapped_column(
        comment="OK, WARN, STALL, STOP, REWIND or DATA_LOSS; null if no member subscribes to the "
        "topic any more, so that its lag does not count."
    )
