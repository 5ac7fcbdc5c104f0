"""Tables of decisions, plans, and the steps in a plan's life.

Belongs here: rows that are written with a decision and with each step of a plan. Belongs elsewhere:
measurements (`history`), and the rules for transitions, which the trigger `plan_event_apply`
enforces.
"""

from datetime import datetime
from typing import Annotated, Any, Final
from uuid import UUID

from sqlalchemy import (
    CheckConstraint,
    ForeignKey,
    ForeignKeyConstraint,
    Identity,
    Index,
    PrimaryKeyConstraint,
    UniqueConstraint,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from fairlead.domain.identity import FourEyes as SeenBy
from fairlead.domain.plan_states import STATES
from fairlead.store.models.base import Base, Int32, MeasuredBalance, one_of, one_per_group

#: Web actions.
VERBS: Final = ("approve", "reject", "rollback", "withdraw", "freeze", "unfreeze")
#: Outcomes of web actions; `Acted` in `fairlead.store.acts` explains them.
OUTCOMES: Final = ("done", "agreed", "asked", "refused")


class ConsumerGroup(Base):
    """All groups ever observed; transactions lock a group's row before they write its plans."""

    __tablename__ = "consumer_group"

    group_id: Mapped[str] = mapped_column(primary_key=True, comment="Kafka's group.id.")
    first_seen_at: Mapped[datetime] = mapped_column(
        server_default=func.now(), comment="When Fairlead first stored anything about the group."
    )


#: A key column whose group must be in the table consumer_group.
KnownGroup = Annotated[
    str,
    mapped_column(
        ForeignKey(ConsumerGroup.group_id), primary_key=True, comment="The consumer group."
    ),
]


class Plan(Base):
    """All versions of all groups' plans. Only the column `state` can change."""

    __tablename__ = "plan"
    __table_args__ = (
        UniqueConstraint("group_id", "version", "sha256"),
        CheckConstraint("version >= 1", name="version"),
        CheckConstraint(one_of("state", STATES), name="state"),
        CheckConstraint("sha256 = encode(sha256(document), 'hex')", name="sha256"),
        CheckConstraint("rolled_back_from < version", name="rolled_back_from"),
        CheckConstraint(one_of("four_eyes", ("database", "proxy")), name="four_eyes"),
        ForeignKeyConstraint(
            ["group_id", "request_id"],
            ["fairlead_raw.page_act.group_id", "fairlead_raw.page_act.id"],
        ),
        ForeignKeyConstraint(
            ["group_id", "rolled_back_from"],
            ["fairlead_raw.plan.group_id", "fairlead_raw.plan.version"],
        ),
        one_per_group("plan_one_published_idx", "state = 'published'"),
        one_per_group("plan_one_open_idx", "state IN ('proposed', 'approved')"),
        one_per_group("plan_one_sending_idx", "state = 'sending'"),
        Index("plan_created_at_idx", "created_at"),
    )

    group_id: Mapped[KnownGroup]
    version: Mapped[Int32] = mapped_column(
        primary_key=True,
        comment="Number of the version: 1, 2, 3 and so on in each group, without gaps.",
    )
    plan_id: Mapped[UUID] = mapped_column(unique=True, comment="The plan's id in its document.")
    state: Mapped[str] = mapped_column(server_default="proposed", comment="The plan's state.")
    assignor: Mapped[str] = mapped_column(comment="The assignor whose candidate was chosen.")
    reason: Mapped[str] = mapped_column(
        comment="Why a plan is needed, and why this candidate was chosen."
    )
    snapshot_id: Mapped[str] = mapped_column(comment="The snapshot the plan was made from.")
    snapshot_at: Mapped[datetime] = mapped_column(comment="When that snapshot was taken.")
    created_at: Mapped[datetime] = mapped_column(comment="When the plan was proposed.")
    expires_at: Mapped[datetime | None] = mapped_column(
        comment="When the plan expires; null if it does not expire."
    )
    document: Mapped[bytes] = mapped_column(comment="The exact bytes that are published, in JSON.")
    sha256: Mapped[str] = mapped_column(comment="SHA-256 of the document, in hexadecimal.")
    four_eyes: Mapped[SeenBy | None] = mapped_column(
        comment="Who must approve. database: a database user who is neither the proposer nor a"
        " planner. proxy: the same, or a second person on web pages. Null: any approver."
    )
    shadow: Mapped[bool] = mapped_column(
        server_default=text("false"),
        comment="Whether the group was in shadow mode, so that the plan cannot be approved.",
    )
    rolled_back_from: Mapped[Int32 | None] = mapped_column(
        comment="The version whose assignment this version repeats; null if it is no rollback."
    )
    analysed: Mapped[Any | None] = mapped_column(
        JSONB,
        comment="Inputs of the analysis: each member's load before and under the plan, and its"
        " capacity; costs of records; reported work; statuses. Null if there was no analysis.",
    )
    request_id: Mapped[UUID | None] = mapped_column(
        unique=True,
        comment="Id of the request for this rollback on a web page; null if there was no request.",
    )


def of_plan() -> ForeignKeyConstraint:
    """Return the foreign key of a table whose rows belong to versions of plans."""
    return ForeignKeyConstraint(
        ["group_id", "version"], ["fairlead_raw.plan.group_id", "fairlead_raw.plan.version"]
    )


class FourEyes(Base):
    """Groups whose plans a second person must approve; written only by the schema's owner."""

    __tablename__ = "four_eyes"

    groups: Mapped[str] = mapped_column(
        primary_key=True, comment="Groups, as in a policy: * and ? are wildcards."
    )


class PlanEvent(Base):
    """Each step in a plan's life, with the actor, the time and the reason; append-only."""

    # The trigger `plan_event_apply` sets the time, the users and the transaction.
    __tablename__ = "plan_event"
    __table_args__ = (
        ForeignKeyConstraint(
            ["group_id", "version", "sha256"],
            ["fairlead_raw.plan.group_id", "fairlead_raw.plan.version", "fairlead_raw.plan.sha256"],
        ),
        CheckConstraint(one_of("state", STATES), name="state"),
        CheckConstraint(
            "num_nonnulls(topic, partition, record_offset)"
            " = CASE WHEN state = 'published' THEN 3 ELSE 0 END",
            name="position",
        ),
        Index("plan_event_at_idx", "at"),
        Index("plan_event_transaction_id_idx", "transaction_id"),
    )

    group_id: Mapped[str] = mapped_column(primary_key=True, comment="The consumer group.")
    version: Mapped[Int32] = mapped_column(primary_key=True, comment="The plan's version.")
    state: Mapped[str] = mapped_column(
        primary_key=True, comment="The state the plan entered. No plan returns to an earlier state."
    )
    at: Mapped[datetime] = mapped_column(comment="Time of the step, by the database's clock.")
    actor: Mapped[str] = mapped_column(
        comment="The person for whom a service acts, or the rule that acts; else database_user."
    )
    database_user: Mapped[str] = mapped_column(comment="The session's database user.")
    reason: Mapped[str] = mapped_column(comment="Why.")
    sha256: Mapped[str] = mapped_column(comment="The document's hash, as the actor named it.")
    topic: Mapped[str | None] = mapped_column(comment="Topic of the published record.")
    partition: Mapped[Int32 | None] = mapped_column(comment="Partition of the published record.")
    record_offset: Mapped[int | None] = mapped_column(comment="Offset of the published record.")
    transaction_id: Mapped[int] = mapped_column(
        comment="The transaction that took the step, as pg_current_xact_id() numbers it."
    )


def _of_record() -> tuple[ForeignKeyConstraint | CheckConstraint, ...]:
    """Return the constraints of tables with records of the plan topic."""
    return (
        of_plan(),
        CheckConstraint(one_of("kind", ("plan", "withdrawn")), name="kind"),
        CheckConstraint("epoch > 0", name="epoch"),
    )


class TopicRecord:
    """The fields of a record of the plan topic, as columns."""

    group_id: Mapped[str] = mapped_column(
        primary_key=True, sort_order=-1, comment="The consumer group."
    )
    kind: Mapped[str] = mapped_column(sort_order=-1, comment="plan or withdrawn.")
    version: Mapped[Int32] = mapped_column(
        sort_order=-1, comment="The version that is sent or withdrawn."
    )
    epoch: Mapped[int] = mapped_column(
        sort_order=-1, comment="Epoch of the record; followers ignore records with a lower epoch."
    )
    lease_until: Mapped[datetime | None] = mapped_column(
        sort_order=-1,
        comment="End of the plan's lease; null if the plan is withdrawn.",
    )


class LastRecord(TopicRecord, Base):
    """The newest record of each group that was sent to the plan topic."""

    __tablename__ = "plan_record"
    __table_args__ = (
        *_of_record(),
        CheckConstraint("(kind = 'plan') = (lease_until IS NOT NULL)", name="lease"),
    )

    topic: Mapped[str] = mapped_column(comment="The plan topic.")
    partition: Mapped[Int32] = mapped_column(comment="Partition of the plan topic.")
    record_offset: Mapped[int] = mapped_column(comment="The offset in the partition.")
    at: Mapped[datetime] = mapped_column(
        server_default=func.now(), comment="When the record was sent, by the database's clock."
    )


class OutboxRow(TopicRecord, Base):
    """The outbox: records for the plan topic, committed before they are sent."""

    __tablename__ = "plan_intent"
    __table_args__ = _of_record()

    actor: Mapped[str | None] = mapped_column(
        comment="The person who requested the record; null if no person did."
    )
    reason: Mapped[str | None] = mapped_column(comment="Why the plan is withdrawn.")


class PlanAttempt(Base):
    """The last failed attempt to send each group's plan."""

    __tablename__ = "plan_attempt"

    group_id: Mapped[KnownGroup]
    version: Mapped[Int32] = mapped_column(comment="The version that was to be sent.")
    at: Mapped[datetime] = mapped_column(comment="When the attempt failed.")
    reason: Mapped[str] = mapped_column(comment="Why.")
    again_at: Mapped[datetime] = mapped_column(comment="When the planner tries again.")


class PlanPartition(Base):
    """The partitions of the plan topic; a publisher locks a row to write to this partition."""

    __tablename__ = "plan_partition"

    topic: Mapped[str] = mapped_column(primary_key=True, comment="The plan topic.")
    partition: Mapped[Int32] = mapped_column(
        primary_key=True, comment="Partition of the plan topic."
    )
    turn: Mapped[int] = mapped_column(
        server_default=text("0"),
        comment="How often publishers have locked this row. If the number has changed, another"
        " publisher may have written to the partition since.",
    )


class MovedPartition(Base):
    """The partitions that change owner in each plan."""

    __tablename__ = "moved_partition"
    __table_args__ = (
        of_plan(),
        CheckConstraint("previous_member IS DISTINCT FROM member", name="moves"),
    )

    group_id: Mapped[str] = mapped_column(primary_key=True, comment="The consumer group.")
    version: Mapped[Int32] = mapped_column(primary_key=True, comment="The plan's version.")
    topic: Mapped[str] = mapped_column(primary_key=True, comment="The topic.")
    partition: Mapped[Int32] = mapped_column(primary_key=True, comment="The partition.")
    previous_member: Mapped[str | None] = mapped_column(
        comment="The owner in the snapshot; null if there was none."
    )
    member: Mapped[str | None] = mapped_column(
        comment="The owner in the plan; null if there is none."
    )
    weight: Mapped[float | None] = mapped_column(comment="The load that moves, in records.")
    reason: Mapped[str | None] = mapped_column(comment="Why the assignor moves the partition.")


class PageAct(Base):
    """Web actions: the person, the proof of identity, the action and its outcome."""

    __tablename__ = "page_act"
    __table_args__ = (
        UniqueConstraint("group_id", "id"),
        CheckConstraint(one_of("act", VERBS), name="act"),
        CheckConstraint(one_of("outcome", OUTCOMES), name="outcome"),
        CheckConstraint(
            "(act = 'freeze') = (version IS NULL)"
            " AND (act IN ('freeze', 'unfreeze')) = (sha256 IS NULL)"
            " AND (sha256 IS NULL OR group_id IS NOT NULL)",
            name="about",
        ),
        Index("page_act_asked_idx", "at", postgresql_where=text("outcome = 'asked'")),
    )

    id: Mapped[UUID] = mapped_column(
        primary_key=True, comment="Id of the form; a form counts once."
    )
    at: Mapped[datetime] = mapped_column(comment="When.")
    actor: Mapped[str] = mapped_column(comment="The person, as the web server names them.")
    proof: Mapped[str] = mapped_column(
        comment="The proof of identity that the web server accepted."
    )
    act: Mapped[str] = mapped_column(
        comment="approve, reject, rollback, withdraw, freeze or unfreeze."
    )
    group_id: Mapped[str | None] = mapped_column(
        ForeignKey(ConsumerGroup.group_id), comment="The consumer group; null for all groups."
    )
    version: Mapped[Int32 | None] = mapped_column(
        comment="The plan's version or, for unfreeze, the freeze event's number; null for freeze."
    )
    sha256: Mapped[str | None] = mapped_column(comment="The version's hash, as the person saw it.")
    reason: Mapped[str] = mapped_column(comment="Why.")
    database_user: Mapped[str] = mapped_column(comment="The web server's login.")
    outcome: Mapped[str] = mapped_column(
        comment="done, agreed (another person must agree), asked (the planner must act) or refused."
    )
    answered_at: Mapped[datetime | None] = mapped_column(comment="When the planner answered.")
    answer: Mapped[str | None] = mapped_column(comment="The planner's answer.")


class DecisionRow(Base):
    """The decision on each snapshot of a group, including decisions to change nothing."""

    __tablename__ = "decision"
    __table_args__ = (
        PrimaryKeyConstraint("group_id", "snapshot_at", "snapshot_id"),
        CheckConstraint(one_of("outcome", ("plan", "no change", "failed")), name="outcome"),
        CheckConstraint("(outcome = 'plan') = (version IS NOT NULL)", name="version"),
        {"postgresql_partition_by": "RANGE (snapshot_at)"},
    )

    group_id: Mapped[str] = mapped_column(comment="The consumer group.")
    snapshot_id: Mapped[str] = mapped_column(comment="The snapshot decided on.")
    snapshot_at: Mapped[datetime] = mapped_column(comment="When that snapshot was taken.")
    decided_at: Mapped[datetime] = mapped_column(
        server_default=func.now(), comment="When the decision was stored."
    )
    outcome: Mapped[str] = mapped_column(comment="plan, no change, or failed.")
    reason: Mapped[str] = mapped_column(comment="The reason.")
    version: Mapped[Int32 | None] = mapped_column(comment="The plan proposed, if any.")
    settings: Mapped[str | None] = mapped_column(
        comment="The file whose policies decided, and the start of its SHA-256."
    )


class CandidatePlan(MeasuredBalance, Base):
    """The candidates for each snapshot: one per assignor of the policy."""

    __tablename__ = "candidate"
    __table_args__ = (
        PrimaryKeyConstraint("group_id", "snapshot_at", "snapshot_id", "assignor"),
        {"postgresql_partition_by": "RANGE (snapshot_at)"},
    )

    group_id: Mapped[str] = mapped_column(comment="The consumer group.")
    snapshot_id: Mapped[str] = mapped_column(comment="The snapshot.")
    assignor: Mapped[str] = mapped_column(comment="The assignor's name.")
    outcome: Mapped[str | None] = mapped_column(comment="The assignor's own note on its result.")
    error: Mapped[str | None] = mapped_column(comment="Why there is no assignment.")
    snapshot_at: Mapped[datetime] = mapped_column(comment="When the snapshot was taken.")


class PlanPruned(Base):
    """Number of pruned versions of each group. Versions that were followed or rejected are kept."""

    __tablename__ = "plan_pruned"

    group_id: Mapped[str] = mapped_column(primary_key=True, comment="The consumer group.")
    versions: Mapped[int] = mapped_column(comment="Versions that pruning has removed.")


class FreezeEvent(Base):
    """Each time a group was frozen or unfrozen; no new version is sent to a frozen group."""

    __tablename__ = "freeze_event"
    __table_args__ = (Index("freeze_event_group_idx", "group_id", "number"),)

    number: Mapped[int] = mapped_column(
        Identity(always=True), primary_key=True, comment="The order of the events."
    )
    group_id: Mapped[str | None] = mapped_column(
        ForeignKey(ConsumerGroup.group_id), comment="The consumer group; null for all groups."
    )
    frozen: Mapped[bool] = mapped_column(comment="True: frozen. False: unfrozen.")
    at: Mapped[datetime] = mapped_column(comment="When.")
    reason: Mapped[str] = mapped_column(comment="Why.")
    actor: Mapped[str] = mapped_column(comment="The person who requested it.")
    database_user: Mapped[str] = mapped_column(comment="The database user who did it.")


class PlanRegression(Base):
    """Versions that made their groups worse, with the evidence and the consequence."""

    __tablename__ = "regression"
    __table_args__ = (of_plan(),)

    group_id: Mapped[str] = mapped_column(primary_key=True, comment="The consumer group.")
    version: Mapped[Int32] = mapped_column(primary_key=True, comment="The plan's version.")
    at: Mapped[datetime] = mapped_column(comment="When the verdict was stored.")
    evidence: Mapped[str] = mapped_column(comment="The evidence, in a sentence.")
    automatic: Mapped[bool] = mapped_column(
        comment="Whether the planner rolls back automatically; otherwise a person decides."
    )
    back_to: Mapped[Int32 | None] = mapped_column(
        comment="The version to return to; null if the plan is to be withdrawn."
    )
    back_off_until: Mapped[datetime] = mapped_column(
        comment="Until when no plan that moves partitions is proposed for the group."
    )
