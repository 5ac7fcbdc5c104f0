"""Notices: which is to be sent next, and what came of it.

Belongs here: the statements of the one who sends. Does not: when there is a notice
(`migrations/sql/notices.sql`), sending (`fairlead.surfaces.notices`).

Who sends a notice has committed before when it is due again: two who send at once never have the
same, no transaction waits for the receiver, and what dies on the way is sent again. Brakes and
plans come before what is the matter with groups, which may begin for thousands at once.
"""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from sqlalchemy import Engine, text

from fairlead.domain.notices import Notice
from fairlead.store.engine import transaction

_END: Final = text("""
UPDATE fairlead_raw.notice told SET ended_at = now(),
    outcome = CASE WHEN event <> ALL(:events) THEN 'unwanted'
              WHEN at < now() - interval '3 days' THEN 'given up' ELSE 'outdated' END
WHERE ended_at IS NULL AND (event <> ALL(:events)
    OR next_at <= now() AND (at < now() - interval '3 days' OR NOT fairlead_raw.notice_holds(told)))
RETURNING outcome, event, group_id, answer
""")
_CLAIM: Final = text("""
UPDATE fairlead_raw.notice SET attempts = attempts + 1,
    next_at = now() + least(interval '30 seconds' * 2 ^ least(attempts, 20), interval '1 hour')
WHERE id = (
    SELECT id FROM fairlead_raw.notice told
    WHERE ended_at IS NULL AND next_at <= now() AND fairlead_raw.notice_holds(told)
    ORDER BY event LIKE 'group.%', next_at, at, id LIMIT 1 FOR UPDATE SKIP LOCKED
)
RETURNING id, event, at, group_id, version, actor, said
""")
_ANSWER: Final = text("""
UPDATE fairlead_raw.notice SET answer = :answer, answered_at = now(),
    ended_at = CASE WHEN :sent THEN now() END, outcome = CASE WHEN :sent THEN 'sent' END
WHERE id = :id AND ended_at IS NULL
""")
_STANDING: Final = text("""
SELECT count(*) FILTER (WHERE ended_at IS NULL AND attempts > 0) AS waiting,
    count(*) FILTER (WHERE outcome = 'given up') AS given_up,
    max(ended_at) FILTER (WHERE outcome = 'sent') AS sent_at,
    (array_agg(answer ORDER BY answered_at DESC)
        FILTER (WHERE answer IS NOT NULL AND outcome IS DISTINCT FROM 'sent'))[1] AS answer
FROM fairlead_raw.notice WHERE at > now() - interval '7 days'
""")


@dataclass(frozen=True)
class SendingState:
    """How sending goes, as of the last seven days.

    Parameters
    ----------
    waiting
        Notices that were tried in vain, and are tried again.
    given_up
        Those that are not tried any more.
    sent_at
        When the last was sent; None: none was.
    answer
        What came of the newest attempt in vain; None: there was none.
    """

    waiting: int
    given_up: int
    sent_at: datetime | None
    answer: str | None


def end_notices(engine: Engine, events: Collection[str]) -> list[str]:
    """End what is not to be sent: nobody wants it, it holds no more, or it is three days old.

    Returns
    -------
    What was given up, a line each.
    """
    with transaction(engine) as connection:
        ended = connection.execute(_END, {"events": list(events)}).all()
    return [
        f"{row.event} of {row.group_id or 'all groups'}: {row.answer or 'nobody has sent it'}"
        for row in ended
        if row.outcome == "given up"
    ]


def next_notice(engine: Engine) -> Notice | None:
    """Return what is to be sent now; if nobody says what came of it, it is due again later."""
    with transaction(engine) as connection:
        row = connection.execute(_CLAIM).one_or_none()
    return None if row is None else Notice(*row)


def answered(engine: Engine, notice: Notice, answer: str, *, sent: bool) -> None:
    """Say what came of sending a notice."""
    with transaction(engine) as connection:
        connection.execute(_ANSWER, {"id": notice.id, "answer": answer, "sent": sent})


def read_standing(engine: Engine) -> SendingState:
    """Return how sending goes."""
    with transaction(engine) as connection:
        return SendingState(*connection.execute(_STANDING).one())
