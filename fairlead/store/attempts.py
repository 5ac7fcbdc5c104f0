"""Failed attempts to send plans: the last attempt of each group, with its reason.

Belongs here: storing, reading and deleting them. Belongs elsewhere: deciding when to try again
(`fairlead.workflows.reconciling`).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, Engine, delete, select
from sqlalchemy.dialects.postgresql import insert

from fairlead.store.engine import transaction
from fairlead.store.models.plan import Plan, PlanAttempt


@dataclass(frozen=True)
class Attempt:
    """A failed attempt to send a plan.

    Parameters
    ----------
    group, version
        The plan.
    at
        Time of the attempt.
    reason
        Why the plan was not sent.
    again_at
        The planner tries again at this time or earlier.
    """

    group: str
    version: int
    at: datetime
    reason: str
    again_at: datetime


def record_attempts(engine: Engine, attempts: Sequence[Attempt]) -> None:
    """Store failed attempts to send plans, at most one per group."""
    if not attempts:
        return
    new = insert(PlanAttempt)
    columns = {name: new.excluded[name] for name in ("version", "at", "reason", "again_at")}
    rows = [
        {"group_id": attempt.group} | {name: getattr(attempt, name) for name in columns}
        for attempt in attempts
    ]
    later = new.excluded.at >= PlanAttempt.at
    upsert = new.on_conflict_do_update(index_elements=["group_id"], set_=columns, where=later)
    with transaction(engine) as connection:
        connection.execute(upsert, rows)


def last_attempts(engine: Engine, groups: Iterable[str]) -> dict[str, Attempt]:
    """Return each group's last failed attempt to send a plan, if the plan can still be sent."""
    of_plan = (Plan.group_id == PlanAttempt.group_id) & (Plan.version == PlanAttempt.version)
    failed = (
        select(PlanAttempt.__table__)
        .join(Plan, of_plan)
        .where(
            PlanAttempt.group_id.in_(list(groups)),
            Plan.state.in_(("approved", "sending", "published")),
        )
    )
    with transaction(engine) as connection:
        return {row.group_id: Attempt(*row) for row in connection.execute(failed)}


def forget_attempts(connection: Connection, groups: Iterable[str]) -> None:
    """Delete the failed attempts of groups whose records have been sent.

    The database also deletes the attempts of groups that are unfrozen.
    """
    known = select(PlanAttempt.group_id).where(PlanAttempt.group_id.in_(list(groups)))
    free = known.with_for_update(skip_locked=True).scalar_subquery()
    connection.execute(delete(PlanAttempt).where(PlanAttempt.group_id.in_(free)))
