"""Queries on the history, for people: groups, plans, their moves and differences, lag, events.

Belongs here: queries over the public views; each row is a dict. Does not: verifying or changing
plans (`plans`), the presentation of rows (`fairlead.surfaces.cli`).
"""

import re
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import Engine, text

from fairlead.common.commands import shell_quote
from fairlead.common.nearest import hint
from fairlead.domain.worst_first import worst_first
from fairlead.errors import GroupError, PlanStateError
from fairlead.store.engine import transaction

if TYPE_CHECKING:
    from fairlead.domain.candidate_figures import SnapshotCandidate
    from fairlead.domain.records import Analysed

Row = dict[str, Any]

#: Maximum number of groups compared with a mistyped name.
_NAMES: Final = 20_000
#: Diagnoses that an assignment may cure.
MAY_BE_HELPED: Final = ("unbalanced", "slow member")
#: A group that needs a plan gets a decision within this time, if planning is switched on.
UNDECIDED: Final = timedelta(minutes=30)

_GROUPS: Final = """
SELECT known.group_id AS "group", published.version AS published, published.adherence,
       published.adherence_at,
       waiting.version AS waiting, waiting.state AS waiting_state, waiting.frozen,
       waiting.measured_at AS planned_at, waiting.catch_up_s AS catch_up_planned_s,
       attempt.version AS not_sent_version, attempt.at AS not_sent_at,
       attempt.reason AS not_sent, attempt.again_at AS sent_again_at,
       decided.outcome, decided.decided_at, decided.reason,
       observed.lag_max, observed.imbalance, observed.measured_at AS observed_at,
       live.sampled_at AS live_at, live.behind_s AS behind_now_s, live.lag AS lag_now,
       live.lag_max AS lag_max_now, rebalanced.since_yesterday AS rebalances,
       found.diagnosis, found.names, found.evidence, found.since, found.last_seen,
       found.forecast_time_lag_s, found.utilisation, found.loss_s, found.catch_up_s,
       found.consumers_wanted, found.consumers_why
FROM fairlead_raw.consumer_group known
LEFT JOIN fairlead.diagnosis found ON found.group_id = known.group_id
LEFT JOIN LATERAL (
    SELECT version, adherence, adherence_at FROM fairlead.plan_history
    WHERE group_id = known.group_id AND state = 'published'
) published ON true
LEFT JOIN LATERAL (
    SELECT plan.version, predicted.catch_up_s,
           CASE WHEN plan.shadow THEN 'shadow' ELSE plan.state END AS state,
           plan.state = 'approved' AND plan.rolled_back_from IS NULL AND EXISTS (
               SELECT FROM fairlead.freezes
               WHERE coalesce(freezes.group_id, plan.group_id) = plan.group_id
           ) AS frozen,
           CASE WHEN predicted.forecast_time_lag_s IS NOT NULL THEN predicted.measured_at END
               AS measured_at
    FROM fairlead.plan LEFT JOIN fairlead_raw.plan_balance predicted
        ON predicted.group_id = plan.group_id AND predicted.version = plan.version
        AND predicted.kind = 'predicted'
    WHERE plan.group_id = known.group_id AND plan.state IN ('proposed', 'approved', 'sending')
    ORDER BY plan.state = 'sending' DESC LIMIT 1
) waiting ON true
LEFT JOIN fairlead.plan_attempt attempt ON attempt.group_id = known.group_id
    AND attempt.version IN (published.version, waiting.version)
LEFT JOIN LATERAL (
    SELECT outcome, decided_at, reason FROM fairlead.decision WHERE group_id = known.group_id
    ORDER BY snapshot_at DESC LIMIT 1
) decided ON true
LEFT JOIN LATERAL (
    SELECT lag_max, imbalance, measured_at FROM fairlead.balance_history balance
    WHERE group_id = known.group_id AND kind = 'observed' AND NOT EXISTS (
        -- A rollback is weighed with the lag of an older snapshot: that is no measurement.
        SELECT FROM fairlead_raw.plan WHERE plan.group_id = known.group_id
            AND plan.snapshot_id = balance.snapshot_id AND rolled_back_from IS NOT NULL
    )
    ORDER BY measured_at DESC LIMIT 1
) observed ON true
LEFT JOIN LATERAL (
    SELECT sampled_at,
           (SELECT max(value) FROM unnest(behind_s) value) AS behind_s,
           (SELECT sum(value) FROM unnest(lag) value) AS lag,
           (SELECT max(total) FROM (
               SELECT sum(cell.lag) AS total FROM unnest(owner, lag) AS cell (owner, lag)
               WHERE cell.owner >= 0 GROUP BY cell.owner
           ) by_owner) AS lag_max
    FROM fairlead_raw.group_sample_last
    WHERE group_id = known.group_id AND forecast_time_lag_s IS NOT NULL
) live ON true
LEFT JOIN LATERAL (
    SELECT sum(rebalances)::integer AS since_yesterday FROM fairlead_raw.group_day
    WHERE group_id = known.group_id AND day >= (now() AT TIME ZONE 'UTC')::date - 1
) rebalanced ON true
WHERE CAST(:groups AS text[]) IS NULL OR known.group_id = ANY(CAST(:groups AS text[]))
ORDER BY known.group_id
"""
#: Data for the order, filters and warnings of a list of all groups. It reads history only for
#: groups that wait for a decision.
_STATES: Final = """
SELECT known.group_id AS "group", found.diagnosis, found.since, found.last_seen, found.evidence,
       found.forecast_time_lag_s, found.loss_s, waiting.version AS waiting,
       waiting.state AS waiting_state, published.version AS published,
       adoption.adherence, decided.decided_at
FROM fairlead_raw.consumer_group known
LEFT JOIN fairlead_raw.group_diagnosis found
    ON found.group_id = known.group_id AND found.until IS NULL
LEFT JOIN (
    SELECT DISTINCT ON (group_id) group_id, version,
        CASE WHEN shadow THEN 'shadow' ELSE state END AS state
    FROM fairlead_raw.plan WHERE state IN ('proposed', 'approved', 'sending')
    ORDER BY group_id, plan.state = 'sending' DESC
) waiting ON waiting.group_id = known.group_id
LEFT JOIN fairlead_raw.plan published
    ON published.group_id = known.group_id AND published.state = 'published'
LEFT JOIN fairlead_raw.last_adoption adoption
    ON adoption.group_id = known.group_id AND adoption.version = published.version
LEFT JOIN (
    -- Only these groups search the days of history.
    SELECT ill.group_id, newest.decided_at
    FROM fairlead_raw.group_diagnosis ill
    CROSS JOIN LATERAL (
        SELECT decided_at FROM fairlead_raw.decision WHERE group_id = ill.group_id
        ORDER BY snapshot_at DESC LIMIT 1
    ) newest
    WHERE ill.until IS NULL AND ill.diagnosis = ANY(:may_be_helped)
) decided ON decided.group_id = known.group_id
"""
_DECISIONS: Final = """
SELECT known.group_id AS "group", decided.outcome, decided.version, plan.state, decided.reason
FROM fairlead_raw.consumer_group known
JOIN LATERAL (
    SELECT outcome, version, reason, decided_at FROM fairlead.decision
    WHERE group_id = known.group_id ORDER BY snapshot_at DESC LIMIT 1
) decided ON decided_at > coalesce(CAST(:since AS timestamptz), '-infinity')
LEFT JOIN fairlead.plan ON plan.group_id = known.group_id AND plan.version = decided.version
ORDER BY known.group_id
"""
_PLANS: Final = """
SELECT group_id AS "group", version, state, assignor, rolled_back_from, proposed_at, four_eyes,
       decided_by, decided_at, decision, published_at, moved, placed, lag_max_before,
       lag_max_predicted, lag_max_achieved, imbalance_before, imbalance_predicted,
       imbalance_achieved, adherence, reason, snapshot_id, sha256, expires_at,
       forecast_time_lag_before, forecast_time_lag_predicted, utilisation_before,
       utilisation_predicted, catch_up_before, catch_up_predicted,
       topic_spread_before, topic_spread_predicted, topic_spread_achieved,
       rack_gb_per_day_before, rack_gb_per_day_predicted,
       rack_cost_per_day_before, rack_cost_per_day_predicted,
       not_sent_at, not_sent, sent_again_at
FROM fairlead.plan_history
WHERE (CAST(:group AS text) IS NULL OR group_id = :group)
    AND (CAST(:state AS text) IS NULL OR state = :state)
    AND (CAST(:version AS integer) IS NULL OR version = :version)
ORDER BY proposed_at DESC, group_id, version DESC LIMIT :limit
"""
_MOVES: Final = """
SELECT topic, partition, previous_member, member, weight, reason FROM fairlead.plan_moves
WHERE group_id = :group AND version = :version ORDER BY weight DESC NULLS LAST, topic, partition
"""
_EVENTS: Final = """
SELECT state, at, actor, database_user, reason, sha256, topic, partition, record_offset
FROM fairlead.plan_event WHERE group_id = :group AND version = :version ORDER BY at
"""
_CANDIDATES: Final = """
SELECT * FROM fairlead.candidate WHERE group_id = :group AND snapshot_id = :snapshot
ORDER BY lag_max, moved, assignor
"""
_DIFF: Final = """
SELECT topic, partition, member_before, member_after
FROM fairlead.plan_diff(:group, :before, :after) ORDER BY topic, partition
"""
_NEWEST: Final = """
SELECT max(taken_at) AS at FROM (
    SELECT max(snapshot_at) AS taken_at FROM fairlead_raw.lag_snapshot
    WHERE group_id = :group AND snapshot_at <= coalesce(CAST(:at AS timestamptz), 'infinity')
    UNION ALL
    SELECT max(sampled_at) FROM fairlead_raw.group_sample
    WHERE group_id = :group AND sampled_at <= coalesce(CAST(:at AS timestamptz), 'infinity')
) taken
"""
#: With an exact time, Postgres reads only its day.
_LAG_OF_RUN: Final = """
SELECT snapshot_at, topic, partition, member, begin_offset, end_offset, committed_offset, lag,
       lost, lost_at, arrival_rate, consumption_rate, time_lag_s, status, status IS NULL AS has_left
FROM fairlead_raw.partition_lag
WHERE group_id = :group AND snapshot_at = :at
"""
#: Stored samples have neither offsets nor status. A planning run has both; if one planned from this
#: sample, its rows are used instead.
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
#: Processing times are for the present owners, and unknown for earlier times.
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
_ANALYSED: Final = (
    "SELECT analysed FROM fairlead.plan WHERE group_id = :group AND version = :version"
)
_STEPS: Final = """
WITH step AS (
    SELECT group_id AS "group", version, state, at, actor, reason, transaction_id,
           CAST(CAST(transaction_id AS text) AS xid8) AS taken_in
    FROM fairlead.plan_event WHERE state <> 'proposed'
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
#: Text of a snapshot of Postgres: the oldest open transaction, the first future one, and the open
#: ones between.
_SNAPSHOT: Final = re.compile(r"([0-9]+):([0-9]+):[0-9,]*")
#: Period that the first reading of steps covers.
_FIRST_PERIOD: Final = timedelta(minutes=10)
#: Limits each table before the union; otherwise Postgres would read a month for the last hours.
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


def read_groups(engine: Engine, groups: Sequence[str] | None = None) -> list[Row]:
    """Return all groups with diagnosis, plans, decision and balance.

    Parameters
    ----------
    groups
        Only these groups; None: all.
    """
    return read_rows(engine, _GROUPS, groups=None if groups is None else list(groups))


def read_states(engine: Engine) -> list[Row]:
    """Return the state of every group, worst first, in a tenth of the time of `read_groups`.

    Each row has those columns of `read_groups` by which a list is ordered and filtered; only groups
    that a plan may help have a `decided_at`.
    """
    return worst_first(read_rows(engine, _STATES, may_be_helped=list(MAY_BE_HELPED)))


def undecided(rows: Iterable[Row], now: datetime) -> list[str]:
    """Return the groups that a plan may help and that have no recent decision.

    Such groups show that planning is off: `planning_sensor` and `planning_schedule` are off by
    default, and only Dagster knows whether one of them is on.

    Parameters
    ----------
    rows
        From `read_groups`.
    now
        Time-zone-aware.
    """
    return [
        row["group"]
        for row in rows
        if row["diagnosis"] in MAY_BE_HELPED
        and row["waiting"] is None
        and now - row["since"] > UNDECIDED
        and (row["decided_at"] is None or now - row["decided_at"] > UNDECIDED)
    ]


def read_decisions(engine: Engine, since: datetime | None) -> list[Row]:
    """Return each group's newest decision after a moment, and the state of its plan, if any."""
    return read_rows(engine, _DECISIONS, since=since)


def read_plans(
    engine: Engine,
    group: str | None = None,
    *,
    state: str | None = None,
    version: int | None = None,
    limit: int,
) -> list[Row]:
    """Return the newest versions, of a group or of all; raises GroupError for an unknown group."""
    if group is not None:
        require_group(engine, group)
    return read_rows(engine, _PLANS, group=group, state=state, version=version, limit=limit)


def read_plan(engine: Engine, group: str, version: int | None = None) -> Row:
    """Return a version's row of `plan_history`, with its `events` and `moves`.

    Parameters
    ----------
    version
        None: the newest.

    Raises
    ------
    GroupError
        Nothing is stored of the group.
    PlanStateError
        The version does not exist.
    """
    require_group(engine, group)
    plans = read_rows(engine, _PLANS, group=group, state=None, version=version, limit=1)
    if not plans:
        raise PlanStateError(_no_version(group, version))
    plan = plans[0]
    key = {"group": group, "version": plan["version"]}
    return plan | {
        "events": read_rows(engine, _EVENTS, **key),
        "moves": read_rows(engine, _MOVES, **key),
    }


def read_candidates(engine: Engine, group: str, snapshot: str) -> "list[SnapshotCandidate]":
    """Return the candidates of a snapshot, the smallest maximum lag first.

    A rollback has none.
    """
    from fairlead.domain.candidate_figures import candidate_of  # noqa: PLC0415 - imports numpy
    from fairlead.store.decisions import plain_number  # noqa: PLC0415 - the same

    rows = [
        {name: plain_number(value) for name, value in row.items()}
        for row in read_rows(engine, _CANDIDATES, group=group, snapshot=snapshot)
    ]
    for row in rows:
        row["frontier"] = [
            {"moves": moves, "forecast_time_lag_s": forecast_time_lag_s}
            for moves, forecast_time_lag_s in row["frontier"] or ()
        ]
    return [candidate_of(row) for row in rows]


def read_diff(engine: Engine, group: str, before: int, after: int) -> list[Row]:
    """Return the partitions whose owner differs; raises the errors of `read_plan`."""
    require_group(engine, group)
    return read_rows(engine, _DIFF, group=group, before=before, after=after)


def read_lag(
    engine: Engine, group: str, *, at: datetime | None = None, limit: int | None = None
) -> list[Row]:
    """Return the lag of a group's partitions in one snapshot or sample, the largest lag first.

    Parameters
    ----------
    at
        Selects the newest snapshot or sample at or before this time; None: the newest of all.
        Samples are stored each quarter of an hour, and when owners change, without offsets and
        statuses.

    Returns
    -------
    Rows; `has_left` is true for partitions of topics that no member subscribes to any more. They
    come last, have no status, and are not in sums.

    Raises
    ------
    GroupError
        Nothing is stored of the group.
    """
    require_group(engine, group)
    return read_rows(engine, _LAG + _LAG_ORDER, **_moment(engine, group, at), limit=limit)


def read_lag_by_member(
    engine: Engine, group: str, *, at: datetime | None = None, limit: int | None = None
) -> list[Row]:
    """Return the lag of each member in a snapshot; the member is null for unowned partitions.

    Each row has `partitions`, `lag` and `arrival_rate` in the snapshot, `busy` as last reported,
    and the member's last known speed: `records_per_s`, `measured` at its limit, or else a minimum.
    Both are null for an earlier snapshot, since only the latest values are stored.
    """
    require_group(engine, group)
    return read_rows(engine, _LAG_BY_MEMBER, **_moment(engine, group, at), limit=limit)


def read_lag_by_topic(
    engine: Engine, group: str, *, at: datetime | None = None, limit: int | None = None
) -> list[Row]:
    """Return the work of each topic in a snapshot, the largest first.

    Each row has `partitions`, `lag`, `arrival_rate`, and the mean `seconds_per_record` and
    `time_share` of its partitions: null if either is unknown for a partition that gets records.
    """
    require_group(engine, group)
    return read_rows(engine, _LAG_BY_TOPIC, **_moment(engine, group, at), limit=limit)


def read_statuses(engine: Engine, group: str, *, at: datetime) -> list[Row]:
    """Return the number of partitions by status in the snapshot of this time.

    Each row has the `status`, the number of `partitions`, and the names of the `heaviest` ten.
    """
    return read_rows(engine, _STATUSES, group=group, at=at)


def read_analysed(engine: Engine, group: str, version: int) -> "Analysed | None":
    """Return the inputs of the analysis of a version; None: nothing was analysed."""
    from fairlead.domain.records import Analysed, MemberLoad  # noqa: PLC0415 - imports numpy

    rows = [row["analysed"] for row in read_rows(engine, _ANALYSED, group=group, version=version)]
    if not rows or rows[0] is None:
        return None
    (analysed,) = rows
    return Analysed(
        members={name: MemberLoad(**load) for name, load in analysed["members"].items()},
        costs=analysed["costs"],
        reported=analysed["reported"],
        statuses=frozenset(analysed["statuses"]),
    )


def read_history(
    engine: Engine, group: str, *, since: datetime | None = None, limit: int
) -> list[Row]:
    """Return a group's events, the newest first; raises GroupError for an unknown group.

    Events are decisions to change nothing, every step in the life of a plan, the last failed
    attempt to send it, and its adherence.
    """
    require_group(engine, group)
    return read_rows(engine, _HISTORY, group=group, since=since, limit=limit)


def read_steps(engine: Engine, since: str | None) -> tuple[list[Row], str]:
    """Return the steps of plans after their proposal, of all groups, the oldest first.

    Parameters
    ----------
    since
        Result of the last reading, whose steps are left out. None, or a value from another
        database: read the steps of the last ten minutes.

    Returns
    -------
    The steps, and a snapshot of Postgres for the next reading. It lists the open transactions,
    whose steps the next reading returns even if they take long to commit.
    """
    ((until,),) = (
        row.values() for row in read_rows(engine, "SELECT CAST(pg_current_snapshot() AS text)")
    )
    known, newest = _SNAPSHOT.fullmatch(since or ""), _SNAPSHOT.fullmatch(until)
    # A new database numbers its transactions from the beginning.
    if known is None or newest is None or int(known[2]) > int(newest[2]):
        return read_rows(engine, _RECENT_STEPS, until=until, first_period=_FIRST_PERIOD), until
    steps = read_rows(engine, _STEPS_SINCE, until=until, since=since, oldest=int(known[1]))
    return steps, until


def read_group_names(engine: Engine, prefix: str = "", *, limit: int) -> list[str]:
    """Return the names of groups with a prefix; gives up after a second."""
    statement = (
        "SELECT group_id FROM fairlead_raw.consumer_group WHERE starts_with(group_id, :prefix)"
        " ORDER BY group_id LIMIT :limit"
    )
    return _values_within_a_second(engine, statement, prefix=prefix, limit=limit)


def read_versions(engine: Engine, group: str, *, limit: int) -> list[int]:
    """Return the newest versions of a group's plan, the newest first; gives up after a second."""
    statement = (
        "SELECT version FROM fairlead.plan WHERE group_id = :group"
        " ORDER BY version DESC LIMIT :limit"
    )
    return _values_within_a_second(engine, statement, group=group, limit=limit)


def _values_within_a_second(engine: Engine, statement: str, **parameters: Any) -> list[Any]:
    with transaction(engine) as connection:
        connection.execute(text("SET LOCAL statement_timeout = '1s'"))
        return list(connection.scalars(text(statement), parameters))


def _moment(engine: Engine, group: str, at: datetime | None) -> Row:
    """Return the parameters of a query for the newest measurement at or before a moment."""
    newest = _newest(engine, group, None)
    measured = newest if at is None else _newest(engine, group, at)
    return {"group": group, "at": measured, "newest": measured == newest}


def _newest(engine: Engine, group: str, at: datetime | None) -> datetime | None:
    """Return the time of a group's newest lag at or before a moment; None: there is none."""
    (row,) = read_rows(engine, _NEWEST, group=group, at=at)
    newest: datetime | None = row["at"]
    return newest


def require_group(engine: Engine, group: str) -> None:
    """Raise GroupError if nothing is stored of a group; the message suggests a similar name."""
    statement = "SELECT 1 FROM fairlead_raw.consumer_group WHERE group_id = :group"
    if not read_rows(engine, statement, group=group):
        names = read_group_names(engine, limit=_NAMES)
        advice = hint(group, names, "`fairlead groups` lists what there is")
        raise GroupError(f"group {group}: nothing is stored of it{advice}")


def _no_version(group: str, version: int | None) -> str:
    if version is None:
        return f"group {group} has no plan yet; `fairlead history {shell_quote(group)}` shows why"
    return (
        f"group {group} has no version {version}; "
        f"`fairlead plans list {shell_quote(group)}` lists what there is"
    )


def read_rows(engine: Engine, statement: str, **parameters: Any) -> list[Row]:
    """Return the rows of a statement, in its own transaction; raises as `transaction`."""
    with transaction(engine) as connection:
        result = connection.execute(text(statement), parameters)
        keys = tuple(result.keys())
        return [dict(zip(keys, row, strict=True)) for row in result.all()]
