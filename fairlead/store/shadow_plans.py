"""Replayed effect of plans in shadow mode: one row per group and day.

Belongs here: storing and reading those rows. Does not: the replay that computes them
(`fairlead.surfaces.backtest.shadow`).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime

from sqlalchemy import Engine, func, select, tuple_
from sqlalchemy.dialects.postgresql import insert

from fairlead.store.engine import transaction
from fairlead.store.models.history import GroupShadow


@dataclass(frozen=True)
class ShadowDay:
    """A group's day, replayed.

    Parameters
    ----------
    day, until
        The day (UTC), and the time of its last replayed sample; time-zone-aware.
    over_objective_recorded_s
        Measured partition-seconds beyond the objective.
    over_objective_s, over_objective_planned_s
        The same in the replay: with the actual owners, and under the plans.
    plans, downtime_s
        Number of plans that would have been published, and the partition-seconds of move downtime
        that they would have caused.
    """

    day: date
    until: datetime
    over_objective_recorded_s: float
    over_objective_s: float
    over_objective_planned_s: float
    plans: int
    downtime_s: float


def record_shadow_day(engine: Engine, group: str, day: ShadowDay) -> None:
    """Store a day; replaces a replay of the day until an earlier sample."""
    new = insert(GroupShadow).values(group_id=group, **vars(day))
    later = GroupShadow.until <= day.until
    with transaction(engine) as connection:
        connection.execute(
            new.on_conflict_do_update(
                index_elements=["group_id", "day"], set_=vars(day), where=later
            )
        )


def newest_shadow_days(engine: Engine, groups: Iterable[str]) -> dict[str, ShadowDay]:
    """Return the newest day of each group; groups without one are missing."""
    key = tuple_(GroupShadow.group_id, GroupShadow.day)
    newest = select(GroupShadow.group_id, func.max(GroupShadow.day)).group_by(GroupShadow.group_id)
    of_groups = newest.where(GroupShadow.group_id.in_(list(groups)))
    with transaction(engine) as connection:
        rows = connection.execute(select(GroupShadow.__table__).where(key.in_(of_groups)))
        return {group: ShadowDay(*figures) for group, *figures in rows}


def shadow_days(engine: Engine, group: str, since: date) -> list[ShadowDay]:
    """Return the days after `since`, the newest first."""
    later = (GroupShadow.group_id == group, GroupShadow.day > since)
    days = select(GroupShadow.__table__).where(*later).order_by(GroupShadow.day.desc())
    with transaction(engine) as connection:
        return [ShadowDay(*figures) for _, *figures in connection.execute(days)]
