"""History of one group: diagnoses, owners, lag and moves.

Belongs here: stored samples, and queries for a group's page, which are bounded even for large
groups with a long history. Belongs elsewhere: queries on all groups and on a plan
(`history_queries`), conclusions from the rows (`fairlead.domain.stored_samples`).
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Final

from sqlalchemy import Connection, Engine, text

from fairlead.store.queries import Row, read_rows, require_group

if TYPE_CHECKING:
    from fairlead.domain.stored_samples import LastStored, StoredSample

#: Maximum number of samples to read: enough for four days with a sample every quarter of an hour.
TIMES: Final = 400
#: Maximum number of partitions to read, summed over samples: limits the samples of large groups.
CELLS: Final = 40_000
#: Maximum number of adoption rows to read: enough for two days with a row per quarter of an hour.
ADOPTIONS: Final = 192

_DIAGNOSES: Final = """
SELECT since, until, last_seen, diagnosis, names, evidence, forecast_time_lag_s, utilisation,
       reported
FROM fairlead_raw.group_diagnosis WHERE group_id = :group ORDER BY since DESC LIMIT :limit
"""
_ADOPTION: Final = """
SELECT observed_at, version, planned, as_planned FROM fairlead_raw.plan_adoption
WHERE group_id = :group ORDER BY observed_at DESC LIMIT :limit
"""
#: Columns of a stored sample.
_COLUMNS: Final = (
    *(
        "digest",
        "forecast_time_lag_s",
        "utilisation",
        "group_type",
        "protocol",
        "topics",
        "counts",
        "members",
    ),
    *("owner", "lag", "arrival_rate", "behind_s", "capacity_share"),
)
_NAMES: Final = ", ".join(_COLUMNS)
_VALUES: Final = ", ".join(f":{name}" for name in _COLUMNS)
_SELECT: Final = f"SELECT sampled_at AS at, {_NAMES}"
_STORED: Final = f"""
{_SELECT} FROM fairlead_raw.group_sample WHERE group_id = :group ORDER BY sampled_at DESC
LIMIT (
    SELECT greatest(2, least(:samples, :cells / greatest(1, cardinality(owner))))
    FROM fairlead_raw.group_sample WHERE group_id = :group ORDER BY sampled_at DESC LIMIT 1
)
"""  # noqa: S608 - no values: the columns above
_NEWEST: Final = f"{_SELECT} FROM fairlead_raw.group_sample_last WHERE group_id = :group"
#: Reads only the last day; otherwise Postgres would search all days for groups without samples.
_LAST: Final = text("""
SELECT known.group_id, newest.sampled_at, newest.digest, newest.forecast_time_lag_s
FROM unnest(CAST(:groups AS text[])) known (group_id)
CROSS JOIN LATERAL (
    SELECT sampled_at, digest, forecast_time_lag_s FROM fairlead_raw.group_sample
    WHERE group_sample.group_id = known.group_id AND sampled_at > now() - interval '1 day'
    ORDER BY sampled_at DESC LIMIT 1
) newest
""")
_INSERT: Final = text(f"""
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
SELECT max(snapshot_at) AS at FROM fairlead_raw.lag_snapshot
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
        The group is unknown.
    """
    require_group(engine, group)
    return read_rows(engine, _DIAGNOSES, group=group, limit=limit)


def read_adoption(engine: Engine, group: str) -> list[Row]:
    """Return how many partitions had their planned owner at each time, the newest first."""
    return read_rows(engine, _ADOPTION, group=group, limit=ADOPTIONS)


def read_work(engine: Engine, group: str, *, partition: str | None = None, limit: int) -> list[Row]:
    """Return how much time consumers need for each partition, expensive partitions first.

    `partition` ("topic-number") selects a single partition.
    """
    return read_rows(engine, _WORK, group=group, partition=partition, limit=limit)


def last_planning(engine: Engine) -> datetime | None:
    """Return the time of the last snapshot of all planning runs; None if there is no snapshot."""
    at: datetime | None = read_rows(engine, _LAST_PLANNING)[0]["at"]
    return at


def insert_samples(connection: Connection, samples: "Mapping[str, StoredSample]") -> None:
    """Store samples of groups; the table partitions of their days must exist."""
    if samples:
        rows = [{"group": group, **vars(sample)} for group, sample in samples.items()]
        connection.execute(_INSERT, rows)


def replace_last_samples(connection: Connection, samples: "Mapping[str, StoredSample]") -> None:
    """Replace the last sample of groups; the groups must be registered."""
    if samples:
        rows = [{"group": group, **vars(sample)} for group, sample in samples.items()]
        connection.execute(_REPLACE, rows)


def last_samples(connection: Connection, groups: Iterable[str]) -> "dict[str, LastStored]":
    """Return the newest sample of each group; leave out groups without a sample in the last day."""
    from fairlead.domain.stored_samples import LastStored  # noqa: PLC0415 - imports numpy

    rows = connection.execute(_LAST, {"groups": list(groups)})
    return {
        row.group_id: LastStored(row.sampled_at, row.digest, row.forecast_time_lag_s is not None)
        for row in rows
    }


def read_samples(engine: Engine, group: str) -> "list[StoredSample]":
    """Return the stored samples of a group, the oldest first, followed by its last sample.

    Returns at most the newest `TIMES` stored samples. If these have more than `CELLS` partitions in
    total, returns fewer samples, but at least two.
    """
    from fairlead.domain.stored_samples import StoredSample  # noqa: PLC0415 - imports numpy

    rows = read_rows(engine, _STORED, group=group, samples=TIMES, cells=CELLS)
    stored = [StoredSample(**row) for row in reversed(rows)]
    last = [StoredSample(**row) for row in read_rows(engine, _NEWEST, group=group)]
    return stored + [sample for sample in last if not stored or sample.at > stored[-1].at]


def read_moves_of(engine: Engine, group: str, partition: str, *, limit: int) -> list[Row]:
    """Return the versions that move a partition ("topic-number"), the newest first."""
    return read_rows(engine, _MOVES_OF, group=group, partition=partition, limit=limit)
