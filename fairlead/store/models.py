"""The tables of the schema `fairlead`.

Belongs here: columns, keys, checks and comments, as `migrations/` creates them (a test compares the
two). Does not: triggers and views, which are SQL (`migrations/sql`), nor queries (`plans`).

A plan and its balance are rows of few bytes and long life; the lag of every partition is not, so
`partition_lag` has a key that starts a range partitioning by time and no foreign keys.
"""

from datetime import datetime
from decimal import Decimal
from typing import Final
from uuid import UUID

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    DateTime,
    Double,
    ForeignKey,
    ForeignKeyConstraint,
    Identity,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Numeric,
    Text,
    UniqueConstraint,
    func,
    text,
)
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

SCHEMA: Final = "fairlead"

STATES: Final = (
    "proposed",
    "approved",
    "published",
    "superseded",
    "rejected",
    "expired",
    "stale",
    "retired",
)
"""The states of a plan, in the order of its life; `plan_event_apply` holds the transitions."""


def _one_of(column: str, values: tuple[str, ...]) -> str:
    return f"{column} IN ({', '.join(repr(value) for value in values)})"


class Base(DeclarativeBase):
    """What all tables share: the schema, names for constraints, and Postgres types."""

    metadata = MetaData(
        schema=SCHEMA,
        naming_convention={
            "pk": "%(table_name)s_pkey",
            "fk": "%(table_name)s_%(referred_table_name)s_fkey",
            "uq": "%(table_name)s_%(column_0_N_name)s_key",
            "ix": "%(table_name)s_%(column_0_N_name)s_idx",
            "ck": "%(table_name)s_%(constraint_name)s_check",
        },
    )
    type_annotation_map = {  # noqa: RUF012 - SQLAlchemy's declaration
        str: Text,
        int: BigInteger,
        float: Double,
        Decimal: Numeric,
        bytes: LargeBinary,
        datetime: DateTime(timezone=True),
    }


class ConsumerGroup(Base):
    """A group that was ever observed. Its row is the lock for everything done to its plans."""

    __tablename__ = "consumer_group"
    __table_args__ = ({"comment": "Consumer groups ever observed; the row locks a group's plans."},)

    group_id: Mapped[str] = mapped_column(primary_key=True, comment="Kafka's group.id.")
    first_seen_at: Mapped[datetime] = mapped_column(
        server_default=func.now(), comment="When Fairlead first stored anything about the group."
    )


class MeasuredBalance:
    """The metrics of an assignment, as columns.

    Lag sums are numeric: the sum of int64 lags need not fit an int64.
    """

    count_min: Mapped[int | None] = mapped_column(comment="Fewest partitions of a member.")
    count_max: Mapped[int | None] = mapped_column(comment="Most partitions of a member.")
    balance_score: Mapped[Decimal | None] = mapped_column(
        comment="KIP-54: sum of the pairwise differences of partition counts; 0 is even."
    )
    lag_max: Mapped[Decimal | None] = mapped_column(
        comment="Load of the heaviest member, in records."
    )
    lag_mean: Mapped[float | None] = mapped_column(comment="Load a member on average, in records.")
    lag_lower_bound: Mapped[Decimal | None] = mapped_column(
        comment="No assignment has a heaviest member lighter than this, in records."
    )
    gap: Mapped[float | None] = mapped_column(comment="How far lag_max is above its lower bound.")
    kept: Mapped[int | None] = mapped_column(comment="Partitions that stay with their owner.")
    moved: Mapped[int | None] = mapped_column(
        comment="Partitions taken from an owner that is present."
    )
    placed: Mapped[int | None] = mapped_column(
        comment="Partitions without an owner, or whose owner is gone, that get one."
    )


METRICS: Final = (
    "count_min",
    "count_max",
    "balance_score",
    "lag_max",
    "lag_mean",
    "lag_lower_bound",
    "gap",
    "kept",
    "moved",
    "placed",
)
"""The columns of `MeasuredBalance`: the keys of an assignment's metrics."""


class Plan(Base):
    """One version of a group's plan. Only `state` ever changes, and only by a `plan_event`."""

    __tablename__ = "plan"
    __table_args__ = (
        UniqueConstraint("group_id", "version", "sha256"),
        CheckConstraint("version >= 1", name="version"),
        CheckConstraint(_one_of("state", STATES), name="state"),
        CheckConstraint("sha256 = encode(sha256(document), 'hex')", name="sha256"),
        Index(
            "plan_one_published_idx",
            "group_id",
            unique=True,
            postgresql_where=text("state = 'published'"),
        ),
        Index(
            "plan_one_open_idx",
            "group_id",
            unique=True,
            postgresql_where=text("state IN ('proposed', 'approved')"),
        ),
        Index("plan_created_at_idx", "created_at"),
        {"comment": "Every version of every group's plan. Only state changes, by a plan_event."},
    )

    group_id: Mapped[str] = mapped_column(
        ForeignKey(ConsumerGroup.group_id), primary_key=True, comment="The consumer group."
    )
    version: Mapped[int] = mapped_column(
        Integer, primary_key=True, comment="Counts up per group from 1, without gaps."
    )
    plan_id: Mapped[UUID] = mapped_column(unique=True, comment="The plan's id in its document.")
    state: Mapped[str] = mapped_column(
        server_default="proposed", comment="Where the plan is in its life."
    )
    assignor: Mapped[str] = mapped_column(comment="The assignor whose candidate was chosen.")
    reason: Mapped[str] = mapped_column(comment="Why a plan, and why this candidate.")
    snapshot_id: Mapped[str] = mapped_column(comment="The snapshot the plan was made from.")
    snapshot_at: Mapped[datetime] = mapped_column(comment="When that snapshot was taken.")
    created_at: Mapped[datetime] = mapped_column(comment="When the plan was proposed.")
    expires_at: Mapped[datetime | None] = mapped_column(comment="Void from then on; null: never.")
    document: Mapped[bytes] = mapped_column(comment="The exact bytes that are published: JSON.")
    sha256: Mapped[str] = mapped_column(comment="SHA-256 of the document, in hexadecimal.")


class PlanEvent(Base):
    """A step in a plan's life. Inserting one is the only way to change a plan's state."""

    __tablename__ = "plan_event"
    __table_args__ = (
        ForeignKeyConstraint(
            ["group_id", "version", "sha256"],
            ["fairlead.plan.group_id", "fairlead.plan.version", "fairlead.plan.sha256"],
        ),
        CheckConstraint(_one_of("state", STATES), name="state"),
        CheckConstraint(
            "num_nonnulls(topic, partition, record_offset)"
            " = CASE WHEN state = 'published' THEN 3 ELSE 0 END",
            name="position",
        ),
        Index("plan_event_at_idx", "at"),
        {"comment": "Append-only: who took which plan to which state, when and why."},
    )

    group_id: Mapped[str] = mapped_column(primary_key=True, comment="The consumer group.")
    version: Mapped[int] = mapped_column(Integer, primary_key=True, comment="The plan's version.")
    state: Mapped[str] = mapped_column(
        primary_key=True, comment="The state the plan entered. Its life has no way back to one."
    )
    at: Mapped[datetime] = mapped_column(
        server_default=func.clock_timestamp(), comment="When, by the database's clock."
    )
    actor: Mapped[str] = mapped_column(
        server_default=text("SESSION_USER"), comment="Who, as the client says; else database_user."
    )
    database_user: Mapped[str] = mapped_column(
        server_default=text("SESSION_USER"), comment="Who, as the database knows."
    )
    reason: Mapped[str] = mapped_column(comment="Why.")
    sha256: Mapped[str] = mapped_column(comment="The document's hash, as the actor named it.")
    topic: Mapped[str | None] = mapped_column(comment="Where it was published: topic.")
    partition: Mapped[int | None] = mapped_column(
        Integer, comment="Where it was published: partition."
    )
    record_offset: Mapped[int | None] = mapped_column(comment="Where it was published: offset.")


class PlanMove(Base):
    """A partition whose owner a plan changes."""

    __tablename__ = "plan_move"
    __table_args__ = (
        ForeignKeyConstraint(
            ["group_id", "version"], ["fairlead.plan.group_id", "fairlead.plan.version"]
        ),
        CheckConstraint("previous_member IS DISTINCT FROM member", name="moves"),
        {"comment": "The partitions whose owner a plan changes."},
    )

    group_id: Mapped[str] = mapped_column(primary_key=True, comment="The consumer group.")
    version: Mapped[int] = mapped_column(Integer, primary_key=True, comment="The plan's version.")
    topic: Mapped[str] = mapped_column(primary_key=True, comment="The topic.")
    partition: Mapped[int] = mapped_column(Integer, primary_key=True, comment="The partition.")
    previous_member: Mapped[str | None] = mapped_column(
        comment="The owner in the snapshot; null: none."
    )
    member: Mapped[str | None] = mapped_column(comment="The owner in the plan; null: none.")
    weight: Mapped[float | None] = mapped_column(comment="The load that moves, in records.")
    reason: Mapped[str | None] = mapped_column(comment="Why the assignor moves it.")


class Decision(Base):
    """What one look at a group came to: a plan, no change, or a failure, with the reason."""

    __tablename__ = "decision"
    __table_args__ = (
        ForeignKeyConstraint(
            ["group_id", "version"], ["fairlead.plan.group_id", "fairlead.plan.version"]
        ),
        CheckConstraint(_one_of("outcome", ("plan", "no change", "failed")), name="outcome"),
        CheckConstraint("(outcome = 'plan') = (version IS NOT NULL)", name="version"),
        Index("decision_group_id_decided_at_idx", "group_id", "decided_at"),
        {"comment": "What each snapshot of a group came to, even where nothing was changed."},
    )

    group_id: Mapped[str] = mapped_column(
        ForeignKey(ConsumerGroup.group_id), primary_key=True, comment="The consumer group."
    )
    snapshot_id: Mapped[str] = mapped_column(primary_key=True, comment="The snapshot decided on.")
    snapshot_at: Mapped[datetime] = mapped_column(comment="When that snapshot was taken.")
    decided_at: Mapped[datetime] = mapped_column(
        server_default=func.now(), comment="When the decision was stored."
    )
    outcome: Mapped[str] = mapped_column(comment="plan, no change, or failed.")
    reason: Mapped[str] = mapped_column(comment="Why, in words.")
    version: Mapped[int | None] = mapped_column(Integer, comment="The plan proposed, if any.")


class CandidatePlan(MeasuredBalance, Base):
    """What one assignor would have done with a snapshot."""

    __tablename__ = "candidate"
    __table_args__ = (
        ForeignKeyConstraint(
            ["group_id", "snapshot_id"],
            ["fairlead.decision.group_id", "fairlead.decision.snapshot_id"],
        ),
        {"comment": "What each assignor of the policy would have done with a snapshot."},
    )

    group_id: Mapped[str] = mapped_column(primary_key=True, comment="The consumer group.")
    snapshot_id: Mapped[str] = mapped_column(primary_key=True, comment="The snapshot.")
    assignor: Mapped[str] = mapped_column(primary_key=True, comment="The assignor's name.")
    outcome: Mapped[str | None] = mapped_column(comment="What the assignor says of its result.")
    error: Mapped[str | None] = mapped_column(comment="Why it gave no assignment.")


class Balance(MeasuredBalance, Base):
    """The balance of a group: as observed, as a plan predicted it, as the plan achieved it."""

    __tablename__ = "balance"
    __table_args__ = (
        ForeignKeyConstraint(
            ["group_id", "version"], ["fairlead.plan.group_id", "fairlead.plan.version"]
        ),
        CheckConstraint(_one_of("kind", ("observed", "predicted", "achieved")), name="kind"),
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
            ["group_id", "version"], ["fairlead.plan.group_id", "fairlead.plan.version"]
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
    __table_args__ = ({"comment": "Lag of every partition in every snapshot of a group."},)

    group_id: Mapped[str] = mapped_column(primary_key=True, comment="The consumer group.")
    snapshot_at: Mapped[datetime] = mapped_column(
        primary_key=True, comment="When it was measured; names the lag_snapshot."
    )
    topic: Mapped[str] = mapped_column(primary_key=True, comment="The topic.")
    partition: Mapped[int] = mapped_column(Integer, primary_key=True, comment="The partition.")
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
