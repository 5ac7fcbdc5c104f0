"""Tables of the analysis: speeds of members, and diagnoses of groups.

Belongs here: what the next analysis starts from, and the history of diagnoses. Belongs elsewhere:
decisions (`plan.DecisionRow`). Planners write these tables through functions in `migrations/sql`.
"""

from datetime import datetime
from typing import Any

from sqlalchemy import ARRAY, CheckConstraint, Text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from fairlead.domain.diagnoses import DIAGNOSES
from fairlead.store.models.base import Base, one_of, one_per_group
from fairlead.store.models.plan import KnownGroup


class MemberCapacity(Base):
    """Last measured speed of each member, used by forecasts."""

    __tablename__ = "member_capacity"
    __table_args__ = (CheckConstraint("records_per_s >= 0", name="records_per_s"),)

    group_id: Mapped[KnownGroup]
    member: Mapped[str] = mapped_column(primary_key=True, comment="The member's name in plans.")
    records_per_s: Mapped[float]
    measured: Mapped[bool] = mapped_column(
        comment="Whether the speed was measured, under a backlog or from reported work; otherwise"
        " it is a lower bound of the member's capacity."
    )
    measured_at: Mapped[datetime] = mapped_column(comment="When the speed was measured.")


class GroupDiagnosis(Base):
    """Diagnoses of each group; a changed diagnosis adds a row."""

    __tablename__ = "group_diagnosis"
    __table_args__ = (
        CheckConstraint(one_of("diagnosis", DIAGNOSES), name="diagnosis"),
        CheckConstraint(
            "since <= last_seen AND last_seen < coalesce(until, 'infinity')", name="times"
        ),
        one_per_group("group_diagnosis_now_idx", "until IS NULL"),
    )

    group_id: Mapped[KnownGroup]
    since: Mapped[datetime] = mapped_column(primary_key=True, comment="When the diagnosis began.")
    until: Mapped[datetime | None] = mapped_column(
        comment="When another diagnosis followed; null if this is the present diagnosis."
    )
    last_seen: Mapped[datetime] = mapped_column(comment="When the diagnosis was last seen.")
    diagnosis: Mapped[str] = mapped_column(comment="The diagnosis.")
    names: Mapped[list[str]] = mapped_column(
        ARRAY(Text), comment="The members or topic-partitions that the diagnosis names."
    )
    evidence: Mapped[str] = mapped_column(comment="The evidence, in a sentence, as last seen.")
    forecast_time_lag_s: Mapped[float | None]
    utilisation: Mapped[float | None]
    loss_s: Mapped[float | None]
    catch_up_s: Mapped[float | None]
    consumers_wanted: Mapped[int | None]
    consumers_why: Mapped[str] = mapped_column(
        comment="Reason for consumers_wanted, in a sentence."
    )
    costs: Mapped[Any] = mapped_column(
        JSONB,
        comment="Processing time of a record, relative to the usual time in the group. Maps topic"
        " and partition to the estimate, the standard deviation of its logarithm, and the time of"
        " the newest sample in seconds since 1970.",
    )
    reported: Mapped[Any] = mapped_column(
        JSONB,
        comment="Reported work. `partitions` maps topic and partition to the lower end, mean and"
        " upper end of the seconds per record; `consumers` maps names to busy shares.",
    )
    called_for: Mapped[str | None] = mapped_column(
        comment="The plan request to which samples led: the diagnosis with its names; null if"
        " there is no request."
    )
    call_reason: Mapped[str | None] = mapped_column(comment="The reason of the request.")
    called_since: Mapped[datetime | None] = mapped_column(
        comment="Since when each analysis has made the same request."
    )
    called_at: Mapped[datetime | None] = mapped_column(comment="When the request was last made.")
