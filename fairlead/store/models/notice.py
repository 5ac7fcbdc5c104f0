"""The table of notices: what people are told of by the webhook, and what came of it.

Belongs here: the outbox of messages. Does not: when there is one (`migrations/sql/notices.sql`).
"""

from datetime import datetime
from typing import Final

from sqlalchemy import CheckConstraint, Index, Integer, text
from sqlalchemy.orm import Mapped, mapped_column

from fairlead.domain.notices import EVENTS
from fairlead.store.models.base import Base, one_of

NOTICE_OUTCOMES: Final = ("sent", "outdated", "unwanted", "given up")
"""What came of a notice."""


class NoticeRow(Base):
    """What people are told of by the webhook, and what came of it."""

    __tablename__ = "notice"
    __table_args__ = (
        CheckConstraint(one_of("event", EVENTS), name="event"),
        CheckConstraint(one_of("outcome", NOTICE_OUTCOMES), name="outcome"),
        CheckConstraint("(outcome IS NULL) = (ended_at IS NULL)", name="ended"),
        Index("notice_next_idx", "next_at", postgresql_where=text("ended_at IS NULL")),
        Index("notice_group_idx", "group_id", "event", "at"),
    )

    id: Mapped[str] = mapped_column(primary_key=True, comment="The message's: of the event.")
    event: Mapped[str] = mapped_column(comment="What happened.")
    group_id: Mapped[str | None] = mapped_column(comment="The consumer group; null: all groups.")
    version: Mapped[int | None] = mapped_column(Integer, comment="The plan's; null: of none.")
    at: Mapped[datetime] = mapped_column(comment="When it happened.")
    actor: Mapped[str | None] = mapped_column(comment="Who did it; null: nobody in particular.")
    said: Mapped[str] = mapped_column(comment="Why, or by what, in a sentence.")
    attempts: Mapped[int] = mapped_column(
        Integer, server_default=text("0"), comment="How often sending it was begun."
    )
    next_at: Mapped[datetime] = mapped_column(comment="When it is sent, or sent again.")
    answer: Mapped[str | None] = mapped_column(comment="What came of the last attempt.")
    answered_at: Mapped[datetime | None] = mapped_column(comment="When that was said.")
    ended_at: Mapped[datetime | None] = mapped_column(comment="When nothing was left to do.")
    outcome: Mapped[str | None] = mapped_column(
        comment="sent; outdated: it holds no more; unwanted: by the settings; given up."
    )
