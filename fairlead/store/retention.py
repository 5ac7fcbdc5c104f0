"""Pruning of Postgres: drops whole days of history, and deletes other rows that are not needed.

Belongs here: listing and dropping days. Belongs elsewhere: the rules for pruning in
`migrations/sql/history.sql`, which keep plans that were followed or rejected, with their events;
the retention (`fairlead.settings`); and pruning of snapshots (`fairlead.spark.warehouse`).
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Final

from sqlalchemy import Engine, text

from fairlead.store.engine import transaction

#: Statements that list and drop days of history, and delete other rows. Each runs in its own
#: transaction.
_HISTORIES: Final = "SELECT DISTINCT history FROM fairlead.history_days() ORDER BY history"
_DAYS: Final = """
SELECT day, CAST(sum(bytes) AS bigint) FROM fairlead.history_days() GROUP BY day ORDER BY day
"""
_DROP: Final = "SELECT day, bytes FROM fairlead.prune_history(:history, :older_than)"
_DELETE: Final = "SELECT what, gone FROM fairlead.prune_rows(:older_than, :summaries, :at_most)"
#: Maximum number of versions deleted per transaction.
_AT_MOST: Final = 50_000


@dataclass(frozen=True)
class HistoryDay:
    """One day (UTC) of history.

    Parameters
    ----------
    day
        The day.
    bytes
        Size on disk of all the day's histories, including indexes.
    """

    day: date
    bytes: int


@dataclass(frozen=True)
class Pruned:
    """The result of pruning.

    Parameters
    ----------
    days
        The dropped days of history, oldest first.
    rows
        Maps the description of a kind of rows to the number of deleted rows of this kind.
    """

    days: tuple[HistoryDay, ...]
    rows: Mapping[str, int]


def history_days(engine: Engine) -> list[HistoryDay]:
    """Return the stored days of history, oldest first."""
    with transaction(engine) as connection:
        return [HistoryDay(*row) for row in connection.execute(text(_DAYS))]


def prune(
    engine: Engine, older_than: datetime, summaries_older_than: datetime | None = None
) -> Pruned:
    """Drop the days of history before the day of `older_than`; delete old rows of other tables.

    Parameters
    ----------
    older_than
        Time-zone-aware; its day is the day in UTC.
    summaries_older_than
        Limit for the daily summaries of groups; None: keep all. A time later than `older_than` has
        the effect of `older_than`, so summaries are kept at least as long as the history itself.

    Raises
    ------
    StoreUnavailableError
        A transaction reads or writes a history for longer than ten seconds. Days dropped until then
        stay dropped; the next run drops the others.
    """
    with transaction(engine) as connection:
        histories = connection.scalars(text(_HISTORIES)).all()
    dropped: Counter[date] = Counter()
    for history in histories:
        with transaction(engine) as connection:
            limit = {"history": history, "older_than": older_than}
            for day, size in connection.execute(text(_DROP), limit):
                dropped[day] += size
    oldest = datetime.min.replace(tzinfo=older_than.tzinfo)
    limits = {
        "older_than": older_than,
        "summaries": min(summaries_older_than or oldest, older_than),
        "at_most": _AT_MOST,
    }
    rows: Counter[str] = Counter()
    more = True
    while more:
        with transaction(engine) as connection:
            deleted = connection.execute(text(_DELETE), limits).all()
        rows.update({row.what: row.gone for row in deleted})
        more = deleted[0].gone == _AT_MOST
    return Pruned(tuple(HistoryDay(*day) for day in sorted(dropped.items())), dict(rows))
