"""Attempts to send plans that came to nothing: the last of each group, and why.

Belongs here: recording, reading and forgetting them, inside a transaction. Does not: deciding when
the next one is made (`fairlead.workflows.reconciling`).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, delete, select
from sqlalchemy.dialects.postgresql import insert

from fairlead.store.models import Plan, PlanAttempt


@dataclass(frozen=True)
class Attempt:
    """An attempt to send a plan that came to nothing.

    Parameters
    ----------
    group, version
        The plan.
    at
        When it was made.
    reason
        Why the plan was not sent.
    again_at
        When the next one is made at the latest.
    """

    group: str
    version: int
    at: datetime
    reason: str
    again_at: datetime


def record_attempts(connection: Connection, attempts: Sequence[Attempt]) -> None:
    """Store the last attempts of groups; of each group at most one."""
    if not attempts:
        return
    new = insert(PlanAttempt)
    columns = {name: new.excluded[name] for name in ("version", "at", "reason", "again_at")}
    connection.execute(
        new.on_conflict_do_update(
            index_elements=[PlanAttempt.group_id],
            set_=columns,
            where=new.excluded.at >= PlanAttempt.at,
        ),
        [
            {
                "group_id": attempt.group,
                "version": attempt.version,
                "at": attempt.at,
                "reason": attempt.reason,
                "again_at": attempt.again_at,
            }
            for attempt in attempts
        ],
    )


def last_attempts(connection: Connection, groups: Iterable[str]) -> dict[str, Attempt]:
    """Return the last attempts that came to nothing, of plans that are still to be sent."""
    rows = connection.execute(
        select(PlanAttempt.__table__)
        .join(Plan, (Plan.group_id == PlanAttempt.group_id) & (Plan.version == PlanAttempt.version))
        .where(
            PlanAttempt.group_id.in_(list(groups)),
            Plan.state.in_(("approved", "sending", "published")),
        )
    )
    return {
        row.group_id: Attempt(row.group_id, row.version, row.at, row.reason, row.again_at)
        for row in rows
    }


def forget_attempts(connection: Connection, groups: Iterable[str]) -> None:
    """Forget attempts of groups: a record of theirs has been sent since.

    Unfreezing all groups forgets them as well.
    """
    known = select(PlanAttempt.group_id).where(PlanAttempt.group_id.in_(list(groups)))
    free = known.with_for_update(skip_locked=True).scalar_subquery()
    connection.execute(delete(PlanAttempt).where(PlanAttempt.group_id.in_(free)))
