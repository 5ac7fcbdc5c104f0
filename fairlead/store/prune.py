"""Retention: dropping the lag history of whole days.

Belongs here: which days there are, and dropping old ones. Does not: plans, events, decisions and
balances, which are kept for good and written once; nor the Parquet snapshots (`fairlead.spark`).
"""

from dataclasses import dataclass
from datetime import date, datetime

from sqlalchemy import Engine, text

from fairlead.store.engine import transaction


@dataclass(frozen=True)
class LagDay:
    """One day (UTC) of lag history.

    Parameters
    ----------
    day
        The day.
    bytes
        Its size on disk, indexes included.
    """

    day: date
    bytes: int


def lag_days(engine: Engine) -> list[LagDay]:
    """Return the days of which lag is kept, oldest first."""
    with transaction(engine) as connection:
        rows = connection.execute(text("SELECT day, bytes FROM fairlead.lag_days()")).all()
    return [LagDay(*row) for row in rows]


def prune(engine: Engine, older_than: datetime) -> list[LagDay]:
    """Drop the lag of all whole days before a moment.

    Parameters
    ----------
    older_than
        Time-zone-aware. The day (UTC) that it falls on is kept.

    Returns
    -------
    The days that are gone, oldest first.

    Raises
    ------
    StoreUnavailableError
        Somebody reads or writes lag history for longer than ten seconds; nothing is dropped.
    """
    with transaction(engine) as connection:
        rows = connection.execute(
            text("SELECT day, bytes FROM fairlead.prune_lag(:older_than)"),
            {"older_than": older_than},
        ).all()
    return [LagDay(*row) for row in rows]
