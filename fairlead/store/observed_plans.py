"""Replayed effect of plans that are only observed: one row per group and day.

Belongs here: storing and reading those rows. Does not: the replay that computes them
(`fairlead.surfaces.backtest.observing`).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime
from typing import Final

from sqlalchemy import Engine, text

from fairlead.store.engine import transaction
from fairlead.store.history_queries import read_rows

_COLUMNS: Final = "day, until, late_recorded_s, late_s, late_planned_s, plans, paused_s"
_RECORD: Final = text(f"""
INSERT INTO fairlead_raw.group_observed AS kept (group_id, {_COLUMNS})
VALUES (:group, :day, :until, :late_recorded_s, :late_s, :late_planned_s, :plans, :paused_s)
ON CONFLICT (group_id, day) DO UPDATE SET until = excluded.until,
    late_recorded_s = excluded.late_recorded_s, late_s = excluded.late_s,
    late_planned_s = excluded.late_planned_s, plans = excluded.plans, paused_s = excluded.paused_s
WHERE kept.until <= excluded.until
""")  # noqa: S608 - no values: names of columns
_NEWEST: Final = f"""
SELECT DISTINCT ON (group_id) group_id, {_COLUMNS} FROM fairlead_raw.group_observed
WHERE group_id = ANY(:groups) ORDER BY group_id, day DESC
"""  # noqa: S608 - the same
_DAYS: Final = f"""
SELECT {_COLUMNS} FROM fairlead_raw.group_observed
WHERE group_id = :group AND day > CAST(:since AS date) ORDER BY day DESC
"""  # noqa: S608 - the same


@dataclass(frozen=True, kw_only=True)
class ObservedDay:
    """A group's day, replayed.

    Parameters
    ----------
    day, until
        The day (UTC), and the time of its last replayed sample; time-zone-aware.
    late_recorded_s
        Partition-seconds beyond the objective, as measured.
    late_s, late_planned_s
        The same in the replay: with the actual owners, and under the plans.
    plans, paused_s
        Plans that would have been published, and the partition-seconds for which partitions would
        have stood still for them.
    """

    day: date
    until: datetime
    late_recorded_s: float
    late_s: float
    late_planned_s: float
    plans: int
    paused_s: float


def record_observed(engine: Engine, group: str, found: ObservedDay) -> None:
    """Store a day; replaces a replay of the day until an earlier sample."""
    with transaction(engine) as connection:
        connection.execute(_RECORD, {"group": group, **vars(found)})


def newest_observed(engine: Engine, groups: Iterable[str]) -> dict[str, ObservedDay]:
    """Return the newest day of each group; groups never observed are missing."""
    rows = read_rows(engine, _NEWEST, groups=list(groups))
    return {row.pop("group_id"): ObservedDay(**row) for row in rows}


def observed_days(engine: Engine, group: str, since: date) -> list[ObservedDay]:
    """Return the days after `since`, the newest first."""
    return [ObservedDay(**row) for row in read_rows(engine, _DAYS, group=group, since=since)]
