"""How a group's lag went: one figure a snapshot, for plots.

Belongs here: sums over the lag history. Does not: its rows (`history_queries`), drawing
(`fairlead.surfaces.plots`).
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from sqlalchemy import Engine, text

from fairlead.store.engine import transaction

#: A day of snapshots a quarter of an hour apart.
SNAPSHOTS: Final = 96

_TREND: Final = """
SELECT snapshot_at, sum(lag) AS total, max(lag) AS heaviest
FROM fairlead.lag_history
WHERE group_id = :group AND status IS NOT NULL AND snapshot_at >= (
    SELECT min(snapshot_at) FROM (
        SELECT snapshot_at FROM fairlead_raw.lag_snapshot WHERE group_id = :group
        ORDER BY snapshot_at DESC LIMIT :limit
    ) newest
)
GROUP BY snapshot_at ORDER BY snapshot_at
"""


@dataclass(frozen=True)
class LagTrend:
    """A group's lag in its newest snapshots, oldest first; a value each, in records.

    Parameters
    ----------
    at
        When they were taken; time-zone-aware.
    total
        Of all partitions, without those of topics that the group has left.
    heaviest
        Of the partition that has the most.
    """

    at: tuple[datetime, ...] = ()
    total: tuple[float, ...] = ()
    heaviest: tuple[float, ...] = ()


def lag_trend(engine: Engine, group: str, *, limit: int = SNAPSHOTS) -> LagTrend:
    """Return how a group's lag went over the last snapshots that are stored of it."""
    with transaction(engine) as connection:
        rows = connection.execute(text(_TREND), {"group": group, "limit": limit}).all()
    return LagTrend(
        at=tuple(row.snapshot_at for row in rows),
        total=tuple(float(row.total) for row in rows),
        heaviest=tuple(float(row.heaviest) for row in rows),
    )
