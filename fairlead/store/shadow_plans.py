"""Replayed effect of plans in shadow mode: one row per group and day.

Belongs here: storing and reading those rows. Does not: the replay that computes them
(`fairlead.surfaces.backtest.shadow`).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime
from typing import Final

from sqlalchemy import Engine, text

from fairlead.store.engine import transaction
from fairlead.store.queries import read_rows

_COLUMNS: Final = """
day, until, over_objective_recorded_s, over_objective_s, over_objective_planned_s, plans, downtime_s
"""
_RECORD: Final = text(f"""
INSERT INTO fairlead_raw.group_shadow AS kept (group_id, {_COLUMNS})
VALUES (:group, :day, :until, :over_objective_recorded_s, :over_objective_s,
    :over_objective_planned_s, :plans, :downtime_s)
ON CONFLICT (group_id, day) DO UPDATE SET until = excluded.until,
    over_objective_recorded_s = excluded.over_objective_recorded_s,
    over_objective_s = excluded.over_objective_s,
    over_objective_planned_s = excluded.over_objective_planned_s,
    plans = excluded.plans, downtime_s = excluded.downtime_s
WHERE kept.until <= excluded.until
""")  # noqa: S608 - no values: names of columns
_NEWEST: Final = f"""
SELECT DISTINCT ON (group_id) group_id, {_COLUMNS} FROM fairlead_raw.group_shadow
WHERE group_id = ANY(:groups) ORDER BY group_id, day DESC
"""  # noqa: S608 - the same
_DAYS: Final = f"""
SELECT {_COLUMNS} FROM fairlead_raw.group_shadow
WHERE group_id = :group AND day > CAST(:since AS date) ORDER BY day DESC
"""  # noqa: S608 - the same


@dataclass(frozen=True, kw_only=True)
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
    with transaction(engine) as connection:
        connection.execute(_RECORD, {"group": group, **vars(day)})


def newest_shadow_days(engine: Engine, groups: Iterable[str]) -> dict[str, ShadowDay]:
    """Return the newest day of each group; groups without one are missing."""
    rows = read_rows(engine, _NEWEST, groups=list(groups))
    return {row.pop("group_id"): ShadowDay(**row) for row in rows}


def shadow_days(engine: Engine, group: str, since: date) -> list[ShadowDay]:
    """Return the days after `since`, the newest first."""
    return [ShadowDay(**row) for row in read_rows(engine, _DAYS, group=group, since=since)]
