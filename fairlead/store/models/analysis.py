"""Tables of what the analysis knows: how fast members are, what is the matter with groups.

Belongs here: what the next analysis brings along, and the history of diagnoses. Does not: what a
look came to (`plan.DecisionRow`). Planners write both by functions (`migrations/sql`).
"""

from datetime import datetime
from typing import Any

from sqlalchemy import ARRAY, CheckConstraint, ForeignKey, Index, Text, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from fairlead.domain.diagnoses import DIAGNOSES
from fairlead.store.models.base import Base, one_of
from fairlead.store.models.plan import ConsumerGroup


class MemberCapacity(Base):
    """How fast members are, as last seen: what forecasts count with."""

    __tablename__ = "member_capacity"
    __table_args__ = (CheckConstraint("records_per_s >= 0", name="records_per_s"),)

    group_id: Mapped[str] = mapped_column(
        ForeignKey(ConsumerGroup.group_id), primary_key=True, comment="The consumer group."
    )
    member: Mapped[str] = mapped_column(primary_key=True, comment="The member's name in plans.")
    records_per_s: Mapped[float]
    measured: Mapped[bool] = mapped_column(
        comment="Whether it was at its limit: else it can do at least so much."
    )
    measured_at: Mapped[datetime] = mapped_column(comment="When that was seen.")
    evidence: Mapped[str] = mapped_column(comment="What it was seen by.")


class GroupDiagnosis(Base):
    """What was the matter with each group; a row where that changed."""

    __tablename__ = "group_diagnosis"
    __table_args__ = (
        CheckConstraint(one_of("diagnosis", DIAGNOSES), name="diagnosis"),
        CheckConstraint(
            "since <= last_seen AND last_seen < coalesce(until, 'infinity')", name="times"
        ),
        Index(
            "group_diagnosis_now_idx",
            "group_id",
            unique=True,
            postgresql_where=text("until IS NULL"),
        ),
    )

    group_id: Mapped[str] = mapped_column(
        ForeignKey(ConsumerGroup.group_id), primary_key=True, comment="The consumer group."
    )
    since: Mapped[datetime] = mapped_column(primary_key=True, comment="When it was first seen.")
    until: Mapped[datetime | None] = mapped_column(
        comment="When something else was seen; null: it holds still."
    )
    last_seen: Mapped[datetime] = mapped_column(comment="When it was last seen.")
    diagnosis: Mapped[str] = mapped_column(comment="What is the matter.")
    names: Mapped[list[str]] = mapped_column(
        ARRAY(Text), comment="The members, or topic-partition, that it is about."
    )
    evidence: Mapped[str] = mapped_column(comment="By what, in a sentence, as last seen.")
    late_s: Mapped[float | None]
    utilisation: Mapped[float | None]
    loss_s: Mapped[float | None]
    caught_up_s: Mapped[float | None]
    consumers_wanted: Mapped[int | None]
    consumers_why: Mapped[str] = mapped_column(comment="Why so many, in a sentence.")
    costs: Mapped[Any] = mapped_column(
        JSONB,
        comment="How many times as long as usual a record takes: topic to partition to estimate,"
        " standard deviation of its logarithm, and the time of the newest sample, seconds since the"
        " epoch.",
    )
    reported: Mapped[Any] = mapped_column(
        JSONB,
        comment="Reported work. `partitions`: topic to partition to lower end, mean and upper end"
        " of the seconds per record; `consumers`: name to busy share.",
    )
    called_for: Mapped[str | None] = mapped_column(
        comment="What a look calls for a plan by: the diagnosis with its names; null: for none."
    )
    call_reason: Mapped[str | None] = mapped_column(comment="The same in words.")
    called_since: Mapped[datetime | None] = mapped_column(
        comment="When a look first called for the same, without one in between that did not."
    )
    called_at: Mapped[datetime | None] = mapped_column(comment="When a look last did.")
