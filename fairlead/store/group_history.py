"""History of one group: diagnoses, owners, lag and moves.

Belongs here: what is kept of samples, and readings for a group's page, bounded however large the
group and long its history. Does not: what people ask of all groups and of a plan
(`history_queries`), what follows from the rows (`fairlead.domain.stored_samples`).
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Final

from sqlalchemy import Connection, Engine, text

from fairlead.store.history_queries import Row, read_rows, require_group

if TYPE_CHECKING:
    from fairlead.domain.stored_samples import LastStored, StoredSample

#: Four days of samples a quarter of an hour apart.
TIMES: Final = 400
#: Of a group with many partitions fewer are read: as many as have so many of them.
CELLS: Final = 40_000
#: Two days of snapshots a quarter of an hour apart.
ADOPTIONS: Final = 192
DAYS: Final = 90

_DIAGNOSES: Final = """
SELECT since, until, last_seen, diagnosis, names, evidence, late_s, utilisation, reported
FROM fairlead_raw.group_diagnosis WHERE group_id = :group ORDER BY since DESC LIMIT :limit
"""
_DAYS: Final = """
SELECT day, plans, no_changes, failures, late_s_worst, lag_max_worst, imbalance_worst
FROM fairlead.group_day WHERE group_id = :group ORDER BY day DESC LIMIT :limit
"""
_ADOPTION: Final = """
SELECT observed_at, version, planned, as_planned FROM fairlead_raw.plan_adoption
WHERE group_id = :group ORDER BY observed_at DESC LIMIT :limit
"""
#: Columns of a sample as it is kept for pages; those of `Kept`.
_COLUMNS: Final = (
    *("digest", "late_s", "utilisation", "group_type", "protocol", "topics", "counts", "members"),
    *("owner", "lag", "arrival_rate", "behind_s", "capacity_share"),
)
_NAMES: Final = ", ".join(_COLUMNS)
_VALUES: Final = ", ".join(f":{name}" for name in _COLUMNS)
_KEPT: Final = f"SELECT sampled_at AS at, {_NAMES}"
_LOOKS: Final = f"""
{_KEPT} FROM fairlead_raw.group_sample WHERE group_id = :group ORDER BY sampled_at DESC
LIMIT (
    SELECT greatest(2, least(:samples, :cells / greatest(1, cardinality(owner))))
    FROM fairlead_raw.group_sample WHERE group_id = :group ORDER BY sampled_at DESC LIMIT 1
)
"""  # noqa: S608 - no values: the columns above
_LAST_SEEN: Final = f"{_KEPT} FROM fairlead_raw.group_sample_last WHERE group_id = :group"
# Of the last days alone, or every day that is kept would be sampled for a group that is gone.
_LAST: Final = text("""
SELECT known.group_id, newest.sampled_at, newest.digest, newest.late_s
FROM unnest(CAST(:groups AS text[])) known (group_id)
CROSS JOIN LATERAL (
    SELECT sampled_at, digest, late_s FROM fairlead_raw.group_sample
    WHERE group_sample.group_id = known.group_id AND sampled_at > now() - interval '1 day'
    ORDER BY sampled_at DESC LIMIT 1
) newest
""")
_KEEP: Final = text(f"""
INSERT INTO fairlead_raw.group_sample (group_id, sampled_at, {_NAMES})
VALUES (:group, :at, {_VALUES}) ON CONFLICT DO NOTHING
""")  # noqa: S608 - no values: the columns above
_REPLACE: Final = text(f"""
INSERT INTO fairlead_raw.group_sample_last AS last (group_id, sampled_at, {_NAMES})
VALUES (:group, :at, {_VALUES})
ON CONFLICT (group_id) DO UPDATE
SET sampled_at = excluded.sampled_at, {", ".join(f"{name} = excluded.{name}" for name in _COLUMNS)}
WHERE last.sampled_at < excluded.sampled_at
""")  # noqa: S608 - no values: the columns above
_WORK: Final = """
SELECT * FROM fairlead.partition_work
WHERE group_id = :group AND coalesce(CAST(:partition AS text) = topic || '-' || partition, true)
ORDER BY coalesce(time_share, capacity_share) DESC NULLS LAST, topic, partition LIMIT :limit
"""
_LAST_PLANNING: Final = """
SELECT max(last_at) AS at FROM fairlead_raw.group_day WHERE day > current_date - 8
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
    """Return the diagnoses of a group, the newest first.

    Raises
    ------
    GroupError
        Nothing is stored of the group.
    """
    require_group(engine, group)
    return read_rows(engine, _DIAGNOSES, group=group, limit=limit)


def read_days(engine: Engine, group: str) -> list[Row]:
    """Return a group's newest days, a row each, the oldest first."""
    return read_rows(engine, _DAYS, group=group, limit=DAYS)[::-1]


def read_adoption(engine: Engine, group: str) -> list[Row]:
    """Return how many planned partitions were where the plan has them, the newest first."""
    return read_rows(engine, _ADOPTION, group=group, limit=ADOPTIONS)


def read_work(engine: Engine, group: str, *, partition: str | None = None, limit: int) -> list[Row]:
    """Return what partitions, or one named "topic-number", take of consumers; the most first."""
    return read_rows(engine, _WORK, group=group, partition=partition, limit=limit)


def last_planning(engine: Engine) -> datetime | None:
    """Return when a planning run last took a snapshot of any group; None: not within a week."""
    at: datetime | None = read_rows(engine, _LAST_PLANNING)[0]["at"]
    return at


def keep_samples(connection: Connection, kept: "Mapping[str, StoredSample]") -> None:
    """Store what is kept of a sample of groups; the days are there."""
    if kept:
        connection.execute(_KEEP, [{"group": group, **vars(last)} for group, last in kept.items()])


def replace_last_samples(connection: Connection, seen: "Mapping[str, StoredSample]") -> None:
    """Store the last sample of groups in place of the one before; the groups are registered."""
    if seen:
        connection.execute(
            _REPLACE, [{"group": group, **vars(last)} for group, last in seen.items()]
        )


def last_samples(connection: Connection, groups: Iterable[str]) -> "dict[str, LastStored]":
    """Return the newest sample that is kept of each group; without one in the last day: none."""
    from fairlead.domain.stored_samples import LastStored  # noqa: PLC0415 - arrays, for who looks

    rows = connection.execute(_LAST, {"groups": list(groups)})
    return {
        row.group_id: LastStored(row.sampled_at, row.digest, row.late_s is not None) for row in rows
    }


def read_samples(engine: Engine, group: str) -> "list[StoredSample]":
    """Return what is kept of a group's samples, the oldest first, and the last sample.

    The newest `LOOKS`, or as many of them as have `CELLS` partitions, two at least.
    """
    from fairlead.domain.stored_samples import StoredSample  # noqa: PLC0415 - arrays, for who draws

    rows = read_rows(engine, _LOOKS, group=group, samples=TIMES, cells=CELLS)
    kept = [StoredSample(**row) for row in reversed(rows)]
    last = [StoredSample(**row) for row in read_rows(engine, _LAST_SEEN, group=group)]
    return kept + [look for look in last if not kept or look.at > kept[-1].at]


def read_moves_of(engine: Engine, group: str, partition: str, *, limit: int) -> list[Row]:
    """Return the versions that move a partition, named "topic-number", the newest first."""
    return read_rows(engine, _MOVES_OF, group=group, partition=partition, limit=limit)
