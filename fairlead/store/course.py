"""How one group went: what was the matter with it, who owned what, how far behind, what moved.

Belongs here: readings for a group's page, bounded however large the group and long its history.
Does not: what people ask of all groups and of a plan (`reading`), what follows from the rows
(`fairlead.domain.course`).
"""

from typing import Final

from sqlalchemy import Engine

from fairlead.domain.course import Seen
from fairlead.store.reading import Row, read_rows, require_group

#: Two days of snapshots a quarter of an hour apart.
SNAPSHOTS: Final = 192
#: Of a group with many partitions fewer snapshots are read: as many as have so many rows.
LAG_ROWS: Final = 10_000
DAYS: Final = 90

_DIAGNOSES: Final = """
SELECT since, until, last_seen, diagnosis, names, evidence, late_s, utilisation
FROM fairlead_raw.group_diagnosis WHERE group_id = :group ORDER BY since DESC LIMIT :limit
"""
_BALANCE: Final = """
SELECT measured_at, lag_max, late_s, utilisation FROM fairlead_raw.balance
WHERE group_id = :group AND kind = 'observed' AND NOT EXISTS (
    -- A rollback is weighed with the lag of an older snapshot: that is no measurement.
    SELECT FROM fairlead_raw.plan WHERE plan.group_id = :group
        AND plan.snapshot_id = balance.snapshot_id AND rolled_back_from IS NOT NULL
)
ORDER BY measured_at DESC LIMIT :limit
"""
_DAYS: Final = """
SELECT day, plans, no_changes, failures, late_s_worst, lag_max_worst, imbalance_worst
FROM fairlead.group_day WHERE group_id = :group ORDER BY day DESC LIMIT :limit
"""
_ADOPTION: Final = """
SELECT observed_at, version, planned, as_planned FROM fairlead_raw.plan_adoption
WHERE group_id = :group ORDER BY observed_at DESC LIMIT :limit
"""
_SNAPSHOTS: Final = """
SELECT snapshot_at FROM fairlead_raw.lag_snapshot WHERE group_id = :group
ORDER BY snapshot_at DESC LIMIT :limit
"""
_PARTITIONS: Final = """
SELECT count(*) AS partitions FROM fairlead_raw.partition_lag
WHERE group_id = :group AND snapshot_at = :newest
"""
_SEEN: Final = """
SELECT snapshot_at, topic || '-' || partition AS partition, member, lag
FROM fairlead_raw.partition_lag
WHERE group_id = :group AND snapshot_at BETWEEN :first AND :newest
ORDER BY snapshot_at, topic, partition_lag.partition
"""
_MOVES_OF: Final = """
SELECT move.version, plan.state, plan.created_at, published.at AS published_at,
       move.previous_member, move.member, move.weight, move.reason, plan.reason AS plan_reason
FROM fairlead_raw.moved_partition move
JOIN fairlead_raw.plan USING (group_id, version)
LEFT JOIN fairlead_raw.plan_event published ON published.group_id = move.group_id
    AND published.version = move.version AND published.state = 'published'
WHERE move.group_id = :group AND move.topic || '-' || move.partition = :partition
ORDER BY version DESC LIMIT :limit
"""


def read_diagnoses(engine: Engine, group: str, *, limit: int) -> list[Row]:
    """Return what was the matter with a group from when to when, the newest first.

    Raises
    ------
    GroupError
        Nothing is stored of the group.
    """
    require_group(engine, group)
    return read_rows(engine, _DIAGNOSES, group=group, limit=limit)


def read_balance(engine: Engine, group: str) -> list[Row]:
    """Return the newest measurements of a group, the oldest first.

    `lag_max` is the heaviest member's, in records; `late_s` the forecast, `utilisation` a share.
    """
    return read_rows(engine, _BALANCE, group=group, limit=SNAPSHOTS)[::-1]


def read_days(engine: Engine, group: str) -> list[Row]:
    """Return a group's newest days, a row each, the oldest first."""
    return read_rows(engine, _DAYS, group=group, limit=DAYS)[::-1]


def read_adoption(engine: Engine, group: str) -> list[Row]:
    """Return how many planned partitions were where the plan has them, the newest first."""
    return read_rows(engine, _ADOPTION, group=group, limit=SNAPSHOTS)


def read_seen(engine: Engine, group: str) -> list[Seen]:
    """Return who owned which partition and how far behind it was, by time and partition.

    The newest `SNAPSHOTS`, or as many of them as have `LAG_ROWS` partitions, two at least.
    """
    taken = [
        row["snapshot_at"] for row in read_rows(engine, _SNAPSHOTS, group=group, limit=SNAPSHOTS)
    ]
    if not taken:
        return []
    ((partitions,),) = (
        row.values() for row in read_rows(engine, _PARTITIONS, group=group, newest=taken[0])
    )
    first = taken[: max(LAG_ROWS // max(partitions, 1), 2)][-1]
    rows = read_rows(engine, _SEEN, group=group, first=first, newest=taken[0])
    return [Seen(*row.values()) for row in rows]


def read_moves_of(engine: Engine, group: str, partition: str, *, limit: int) -> list[Row]:
    """Return the versions that move a partition, named "topic-number", the newest first."""
    return read_rows(engine, _MOVES_OF, group=group, partition=partition, limit=limit)
