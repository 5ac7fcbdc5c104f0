"""Frozen groups: while a group is frozen, no new version of its plan is sent.

Belongs here: freezing, unfreezing, the present freezes, and which plans they hold back. The trigger
`frozen` in `migrations/sql/freeze.sql` enforces the same rule, by refusing the outbox entry of a
frozen group's new version: if you change one, change the other.
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
SELECT group_id, since, reason, actor, number FROM fairlead.freezes ORDER BY group_id NULLS FIRST
"""


@dataclass(frozen=True)
class Freeze:
    """A freeze in force.

    Parameters
    ----------
    group
        The group; None: all groups.
    since
        When the group was last frozen.
    reason, actor
        The reason, and the person who froze the group.
    number
        Number of the event that froze the group.
    """

    group: str | None
    since: datetime
    reason: str
    actor: str
    number: int = 0

    def __str__(self) -> str:
        """Return a sentence with the group, the person, the time and the reason."""
        since = self.since.astimezone(UTC)
        what = "all groups are" if self.group is None else f"group {self.group} is"
        return f"{what} frozen by {self.actor} since {since:%Y-%m-%d %H:%M} UTC: {self.reason}"

    def holds(self, plan: "StoredPlan") -> bool:
        """Whether the freeze holds back an approved plan: yes, unless the plan is a rollback."""
        return self.group in {None, plan.group} and plan.rolled_back_from is None


def freeze_plans(
    engine: Engine, group: str | None, *, reason: str, actor: str | None = None
) -> None:
    """Freeze a group; if it is frozen already, replace the reason.

    Waits for transactions that began before the freeze and could still record an outbox entry.

    Parameters
    ----------
    group
        The group; None: all groups, including future ones.
    reason
        The reason, stored in the history.
    actor
        The person for whom a service acts; None: the database's session user.

    Raises
    ------
    PlanStateError
        The group is unknown, or the reason is blank.
    """
    with transaction(engine) as connection:
        connection.execute(select(func.fairlead.freeze(group, reason, actor)))


def unfreeze_plans(engine: Engine, group: str | None, *, reason: str) -> None:
    """Unfreeze a group; see `freeze_plans`.

    Group None ends the freeze of all groups, but not the freezes of single groups.

    Raises
    ------
    PlanStateError
        There is no freeze to end. Or the group's plans need a second person's approval, which the
        session's user has no right to give: the user is a planner, or is not an approver.
    """
    with transaction(engine) as connection:
        connection.execute(select(func.fairlead.unfreeze(group, reason)))


def read_freezes(engine: Engine) -> list[Freeze]:
    """Return the freezes in force; a freeze of all groups comes first."""
    with transaction(engine) as connection:
        return holding(connection)


def freezes_on(engine: Engine, group: str) -> list[Freeze]:
    """Return the freezes in force that affect a group: its own, and the freeze of all groups."""
    return [freeze for freeze in read_freezes(engine) if freeze.group in {None, group}]


def holding(connection: Connection) -> list[Freeze]:
    """Return the freezes in force, as this transaction sees them."""
    return [Freeze(*row) for row in connection.execute(text(_HOLDING))]


def freeze_on(plan: "StoredPlan", freezes: Iterable[Freeze]) -> Freeze | None:
    """Return the freeze that holds back a plan; None if there is none."""
    return next((freeze for freeze in freezes if freeze.holds(plan)), None)
