"""Queries on lag, for people: by partition, member or topic, in one snapshot or sample.

Belongs here: queries over the public views; each row is a dict. Belongs elsewhere: storing lag
(`lag`), the history of samples (`group_history`).
"""

from datetime import datetime
from typing import Final

from sqlalchemy import Engine

from fairlead.store.queries import Row, read_rows, require_group

_NEWEST: Final = """
SELECT max(taken_at) AS at FROM (
    SELECT max(snapshot_at) AS taken_at FROM fairlead_raw.lag_snapshot
    WHERE group_id = :group AND snapshot_at <= coalesce(CAST(:at AS timestamptz), 'infinity')
    UNION ALL
    SELECT max(sampled_at) FROM fairlead_raw.group_sample
    WHERE group_id = :group AND sampled_at <= coalesce(CAST(:at AS timestamptz), 'infinity')
) taken
"""
#: Because `snapshot_at` is compared with `=`, Postgres reads only the table partition of one day.
_LAG_OF_RUN: Final = """
SELECT snapshot_at, topic, partition, member, begin_offset, end_offset, committed_offset, lag,
       lost, lost_at, arrival_rate, consumption_rate, time_lag_s, status, status IS NULL AS has_left
FROM fairlead_raw.partition_lag
WHERE group_id = :group AND snapshot_at = :at
"""
#: Stored samples have neither offsets nor statuses, but rows of planning runs have both. Returns no
#: rows if a planning run used the sample as its snapshot: then `_LAG_OF_RUN` has rows.
_LAG_OF_SAMPLE: Final = """
SELECT sampled_at, topic, partition, members[sampled.owner + 1], NULL, NULL, NULL, sampled.lag,
       NULL, NULL, sampled.arrival_rate, NULL, sampled.behind_s, NULL, false
FROM (
    SELECT sampled_at, members, name AS topic, number AS partition,
           value.owner, CAST(round(value.lag) AS bigint) AS lag,
           CASE WHEN forecast_time_lag_s IS NOT NULL THEN CAST(value.arrival_rate AS numeric) END
               AS arrival_rate,
           CASE WHEN forecast_time_lag_s IS NOT NULL THEN CAST(value.behind_s AS numeric) END
               AS behind_s
    FROM fairlead_raw.group_sample
    CROSS JOIN LATERAL (
        SELECT name, number, row_number() OVER (ORDER BY place, number) AS place
        FROM unnest(topics, counts) WITH ORDINALITY AS read (name, count, place)
        CROSS JOIN generate_series(0, count - 1) number
    ) cell
    JOIN LATERAL unnest(owner, lag, arrival_rate, behind_s) WITH ORDINALITY
        AS value (owner, lag, arrival_rate, behind_s, place) USING (place)
    WHERE group_id = :group AND sampled_at = :at AND NOT EXISTS (
        SELECT FROM fairlead_raw.lag_snapshot WHERE group_id = :group AND snapshot_at = :at
    )
) sampled
"""
#: Processing times are known only for the present owners, so they are null in earlier snapshots.
_LAG: Final = f"""
SELECT measured.*, seconds_per_record, seconds_low, seconds_high,
       fairlead_raw.time_share(arrival_rate, seconds_per_record) AS time_share, cost
FROM ({_LAG_OF_RUN} UNION ALL {_LAG_OF_SAMPLE}) measured
LEFT JOIN fairlead.partition_cost costs ON costs.group_id = :group AND costs.topic = measured.topic
    AND costs.partition = measured.partition AND CAST(:newest AS boolean)
"""  # noqa: S608 - no values: the statements above
_LAG_ORDER: Final = " ORDER BY has_left, lag DESC NULLS LAST, topic, partition LIMIT :limit"
_LAG_BY_MEMBER: Final = f"""
SELECT snapshot_at, owned.member, partitions, lag, arrival_rate, busy, records_per_s, measured
FROM (
    SELECT snapshot_at, member, count(*) AS partitions, sum(lag) AS lag,
           sum(arrival_rate) AS arrival_rate
    FROM ({_LAG}) lag WHERE NOT has_left GROUP BY snapshot_at, member
) owned
LEFT JOIN fairlead.member_capacity speed
    ON speed.group_id = :group AND speed.member = owned.member AND CAST(:newest AS boolean)
LEFT JOIN fairlead.consumer_work reported
    ON reported.group_id = :group AND reported.member = owned.member AND CAST(:newest AS boolean)
ORDER BY lag DESC NULLS LAST, owned.member LIMIT :limit
"""  # noqa: S608 - no values: the statement above
_LAG_BY_TOPIC: Final = f"""
SELECT snapshot_at, topic, count(*) AS partitions, sum(lag) AS lag,
       sum(arrival_rate) AS arrival_rate,
       CASE WHEN bool_and(known) THEN sum(time_share) / nullif(sum(arrival_rate), 0) END
           AS seconds_per_record,
       CASE WHEN bool_and(known) THEN sum(time_share) END AS time_share
FROM (
    SELECT *, coalesce(time_share IS NOT NULL OR arrival_rate = 0, false) AS known
    FROM ({_LAG}) measured
) lag WHERE NOT has_left GROUP BY snapshot_at, topic
ORDER BY time_share DESC NULLS LAST, topic LIMIT :limit
"""  # noqa: S608 - no values: the statement above
_STATUSES: Final = f"""
SELECT status, count(*) AS partitions,
       (array_agg(topic || '-' || partition ORDER BY lag DESC NULLS LAST, topic, partition))[1\\:10]
           AS heaviest
FROM ({_LAG_OF_RUN}) measured WHERE status IS NOT NULL
GROUP BY status ORDER BY partitions DESC, status
"""  # noqa: S608 - no values: the statement above


def read_lag(
    engine: Engine, group: str, *, at: datetime | None = None, limit: int | None = None
) -> list[Row]:
    """Return the lag of a group's partitions in one snapshot or sample, the largest lag first.

    Parameters
    ----------
    at
        Selects the newest snapshot or sample at or before this time; None: the newest of all.
        Samples are stored each quarter of an hour, and when owners change. They have neither
        offsets nor statuses.

    Returns
    -------
    One row per partition. `has_left` is true if no member subscribes to the topic any more. Such
    rows come last and have no status; sums do not include them.

    Raises
    ------
    GroupError
        Nothing is stored about the group.
    """
    require_group(engine, group)
    return read_rows(engine, _LAG + _LAG_ORDER, **_moment(engine, group, at), limit=limit)


def read_lag_by_member(
    engine: Engine, group: str, *, at: datetime | None = None, limit: int | None = None
) -> list[Row]:
    """Return the lag of each member in a snapshot; partitions without an owner have member null.

    Each row has `partitions`, `lag` and `arrival_rate` in the snapshot; `busy`, the last reported
    share of time in which the member was busy; and `records_per_s`, the member's last known speed.
    `measured` is false if this speed is only a lower bound, because the member had no backlog.
    Speeds and `busy` are null for earlier snapshots, because only the latest values are stored.
    """
    require_group(engine, group)
    return read_rows(engine, _LAG_BY_MEMBER, **_moment(engine, group, at), limit=limit)


def read_lag_by_topic(
    engine: Engine, group: str, *, at: datetime | None = None, limit: int | None = None
) -> list[Row]:
    """Return the work of each topic in a snapshot, the largest first.

    Each row has `partitions`, `lag`, `arrival_rate`, the mean `seconds_per_record`, and the sum of
    `time_share`. The last two are null if they are unknown for a partition that gets records.
    """
    require_group(engine, group)
    return read_rows(engine, _LAG_BY_TOPIC, **_moment(engine, group, at), limit=limit)


def read_statuses(engine: Engine, group: str, *, at: datetime) -> list[Row]:
    """Count the partitions with each status in the snapshot that was taken at this time.

    Each row has the `status`, the number of `partitions`, and `heaviest`: the names of the ten
    partitions with the largest lag.
    """
    return read_rows(engine, _STATUSES, group=group, at=at)


def _moment(engine: Engine, group: str, at: datetime | None) -> Row:
    """Return a query's parameters that select the newest snapshot or sample at or before a time."""
    newest = _newest(engine, group, None)
    measured = newest if at is None else _newest(engine, group, at)
    return {"group": group, "at": measured, "newest": measured == newest}


def _newest(engine: Engine, group: str, at: datetime | None) -> datetime | None:
    """Return the time of a group's newest snapshot or sample at or before a time; None if none."""
    (row,) = read_rows(engine, _NEWEST, group=group, at=at)
    newest: datetime | None = row["at"]
    return newest
