"""Queries on events, for people: the history of a group, and the steps of plans.

Belongs here: queries over the public views; each row is a dict. Belongs elsewhere: the events of
one version (`history_queries.read_plan`).
"""

import re
from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import Engine

from fairlead.store.queries import Row, read_rows, require_group

_STEPS: Final = """
WITH step AS (
    SELECT group_id AS "group", version, state, at, actor, reason, transaction_id,
           CAST(CAST(transaction_id AS text) AS xid8) AS taken_in
    FROM fairlead.plan_event AS event WHERE state <> 'proposed' AND (
        state NOT IN ('expired', 'stale')
        OR version = (SELECT max(version) FROM fairlead.plan WHERE group_id = event.group_id))
)
SELECT "group", version, state, at, actor, reason FROM step
WHERE pg_visible_in_snapshot(taken_in, CAST(:until AS pg_snapshot))
"""
_STEPS_ORDER: Final = ' ORDER BY at, "group", version'
_RECENT_STEPS: Final = f"{_STEPS} AND at > now() - CAST(:first_period AS interval) {_STEPS_ORDER}"
_STEPS_SINCE: Final = f"""{_STEPS}
    AND transaction_id >= :oldest
    AND NOT pg_visible_in_snapshot(taken_in, CAST(:since AS pg_snapshot)) {_STEPS_ORDER}
"""
#: The text of a `pg_snapshot`, as in `10:20:10,14`: the oldest open transaction, the first future
#: transaction, and the open transactions between them.
_SNAPSHOT: Final = re.compile(r"([0-9]+):([0-9]+):[0-9,]*")
#: The first call of `read_steps` returns the steps of this period.
_FIRST_PERIOD: Final = timedelta(minutes=10)
#: Each subquery on a large table has its own LIMIT. Otherwise Postgres would read a whole month
#: even if only the events of the last hours are needed.
_HISTORY: Final = """
SELECT * FROM (
    (SELECT decided_at AS at, outcome AS event, version, NULL AS actor, reason
     FROM fairlead.decision WHERE group_id = :group AND outcome <> 'plan'
     ORDER BY snapshot_at DESC LIMIT :limit)
    UNION ALL
    SELECT at, state, version, actor, reason FROM fairlead.plan_event WHERE group_id = :group
    UNION ALL
    SELECT at, CASE WHEN frozen THEN 'freeze' ELSE 'unfreeze' END, NULL, actor,
           CASE WHEN group_id IS NULL THEN 'of all groups: ' || reason ELSE reason END
    FROM fairlead.freeze_event WHERE group_id = :group OR group_id IS NULL
    UNION ALL
    SELECT at, 'regression', version, NULL,
           format('%s; in back-off until %s UTC', evidence,
                  to_char(back_off_until AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI'))
    FROM fairlead.regression WHERE group_id = :group
    UNION ALL
    SELECT at, 'not sent', version, NULL, reason FROM fairlead.plan_attempt
    WHERE group_id = :group
    UNION ALL
    (SELECT observed_at, 'observed', version, NULL,
            format('%s of %s partitions as planned', as_planned, planned)
     FROM fairlead_raw.plan_adoption WHERE group_id = :group
     ORDER BY observed_at DESC LIMIT :limit)
) happened
WHERE at >= coalesce(CAST(:since AS timestamptz), '-infinity')
ORDER BY at DESC, version DESC LIMIT :limit
"""


def read_history(
    engine: Engine, group: str, *, since: datetime | None = None, limit: int
) -> list[Row]:
    """Return a group's events, the newest first; raises GroupError for an unknown group.

    Events are decisions without a plan, every step in the life of a plan, the last failed attempt
    to send a plan, measurements of adherence, freezes, and regressions.
    """
    require_group(engine, group)
    return read_rows(engine, _HISTORY, group=group, since=since, limit=limit)


def read_steps(engine: Engine, since: str | None) -> tuple[list[Row], str]:
    """Return the new steps of all groups' plans, the oldest first.

    Left out are proposals, and ends of versions that were not published and have been replaced by a
    newer one: people need to see the newer one.

    Parameters
    ----------
    since
        The Postgres snapshot that the last call returned: only steps after it are returned. If it
        is None or from another database, the steps of the last ten minutes are returned.

    Returns
    -------
    The steps, and a Postgres snapshot for the next call. The snapshot lists the open transactions,
    so the next call returns their steps even if they take long to commit.
    """
    ((until,),) = (
        row.values() for row in read_rows(engine, "SELECT CAST(pg_current_snapshot() AS text)")
    )
    known, newest = _SNAPSHOT.fullmatch(since or ""), _SNAPSHOT.fullmatch(until)
    # In a new database, transaction numbers start again, so `since` may be in the future.
    if known is None or newest is None or int(known[2]) > int(newest[2]):
        return read_rows(engine, _RECENT_STEPS, until=until, first_period=_FIRST_PERIOD), until
    steps = read_rows(engine, _STEPS_SINCE, until=until, since=since, oldest=int(known[1]))
    return steps, until
