"""The brake: while it holds, for a group or for all, no new version is sent.

Belongs here: putting it on, releasing it, and which brakes hold. Does not: what holds plans back,
which the trigger `plan_intent_brake` does in the transaction that records what is about to be sent.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from sqlalchemy import Connection, Engine, func, select, text

from fairlead.store.engine import transaction

if TYPE_CHECKING:
    from fairlead.domain.records import StoredPlan

_HOLDING: Final = """
SELECT group_id, since, reason, actor, number FROM fairlead.brakes ORDER BY group_id NULLS FIRST
"""


@dataclass(frozen=True)
class Brake:
    """A brake that holds.

    Parameters
    ----------
    group
        The group; None: all groups.
    since
        When it was put on last.
    reason, actor
        Why, and by whom.
    number
        Of the event that put it on.
    """

    group: str | None
    since: datetime
    reason: str
    actor: str
    number: int = 0

    def __str__(self) -> str:
        """Say what it holds."""
        what = "of all groups" if self.group is None else f"of group {self.group}"
        at = f"{self.since:%Y-%m-%d %H:%M} UTC"
        return f"the brake {what} holds: {self.actor} put it on at {at}: {self.reason}"

    def holds(self, plan: "StoredPlan") -> bool:
        """Whether it keeps an approved plan from being sent: any but a rollback."""
        return self.group in {None, plan.group} and plan.rolled_back_from is None


def put_on(engine: Engine, group: str | None, *, reason: str, actor: str | None = None) -> None:
    """Put the brake on; where it holds already, for another reason now.

    Returns once no transaction that has not seen it can record what it is about to send.

    Parameters
    ----------
    group
        The group; None: all groups, those of later on among them.
    reason
        Why; stands in the history.
    actor
        Whom a service acts for; None: the database's session user.

    Raises
    ------
    PlanStateError
        The group is not known, or the reason says nothing.
    """
    with transaction(engine) as connection:
        connection.execute(select(func.fairlead.brake(group, reason, actor)))


def release(engine: Engine, group: str | None, *, reason: str, actor: str | None = None) -> None:
    """Release the brake of a group, or, with None, that of all; see `put_on`.

    The brake of all groups and those of single groups are released one by one.

    Raises
    ------
    PlanStateError
        No such brake holds; or plans need four eyes, and the session's user is a planner or no
        approver.
    """
    with transaction(engine) as connection:
        connection.execute(select(func.fairlead.release(group, reason, actor)))


def read_brakes(engine: Engine) -> list[Brake]:
    """Return the brakes that hold, that of all groups first."""
    with transaction(engine) as connection:
        return holding(connection)


def brakes_on(engine: Engine, group: str) -> list[Brake]:
    """Return the brakes that hold for a group: its own, and that of all groups."""
    return [brake for brake in read_brakes(engine) if brake.group in {None, group}]


def holding(connection: Connection) -> list[Brake]:
    """Return the brakes that hold, as this transaction sees them."""
    rows = connection.execute(text(_HOLDING))
    return [
        Brake(row.group_id, row.since.astimezone(UTC), row.reason, row.actor, row.number)
        for row in rows
    ]


def brake_on(plan: "StoredPlan", brakes: Iterable[Brake]) -> Brake | None:
    """Return the brake that keeps a plan from being sent; None: none does."""
    return next((brake for brake in brakes if brake.holds(plan)), None)
