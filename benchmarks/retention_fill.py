"""Fill a database as if the planner had sampled and decided every quarter of an hour for days.

Rows with the lag of single partitions are left out: they would be most of the rows, and web pages
do not read them.
"""

from dataclasses import dataclass
from datetime import date, timedelta

import psycopg
from psycopg import sql

#: The day that counts as today. It is in the same week as the examples in docs/sql.md.
TODAY = date(2026, 1, 6)
TIMES = 96  # samples per day


@dataclass(frozen=True)
class Size:
    """How much history to write to the planner's database.

    Parameters
    ----------
    days
        Number of days with a daily summary.
    kept
        Number of days with full history.
    versions
        Number of published plan versions of each group.
    """

    days: int
    kept: int
    versions: int


_DOCUMENT = """
'{{"format": 2, "group": "' || g || '", "version": ' || v || ', "members": {{'
    || (SELECT string_agg('"c' || m || '": {{"topics": ["' || g || '"], "partitions": {{"' || g
        || '": "' || (m + v) % 5 || '"}}}}', ', ') FROM generate_series(0, 4) m) || '}}}}'
"""
_GROUPS = "(SELECT 'g' || n AS g, n FROM generate_series(1, {groups}) n) of_group"
_PLAN = f"""
INSERT INTO fairlead_raw.plan (group_id, version, plan_id, state, assignor, reason, snapshot_id,
    snapshot_at, created_at, document, sha256)
SELECT g, v, gen_random_uuid(),
    CASE WHEN v = {{versions}} THEN 'published' ELSE 'superseded' END, 'sticky-lag-aware',
    'the most loaded member gets lighter', 's', planned_at, planned_at, document,
    encode(sha256(document), 'hex')
FROM {_GROUPS}, generate_series(1, {{versions}}) v,
    LATERAL (SELECT {{began}}::timestamptz + {{days}} * (v - 1) / {{versions}}::float8
             * interval '1 day' + interval '1 minute' AS planned_at) at,
    LATERAL (SELECT convert_to({_DOCUMENT}, 'UTF8') AS document) written
"""
_OF_PLANS = (
    """
    INSERT INTO fairlead_raw.plan_event
        (group_id, version, state, at, actor, database_user, reason, sha256,
         topic, partition, record_offset)
    SELECT group_id, version, step, created_at + n * interval '1 minute', 'kim', 'planner',
        'agreed with the team', sha256, CASE step WHEN 'published' THEN 'fairlead.plans' END,
        CASE step WHEN 'published' THEN 0 END, CASE step WHEN 'published' THEN version END
    FROM fairlead_raw.plan, unnest(ARRAY['proposed', 'approved', 'sending', 'published'])
        WITH ORDINALITY AS steps (step, n)
    """,
    """
    INSERT INTO fairlead_raw.moved_partition
        (group_id, version, topic, partition, previous_member, member, weight, reason)
    SELECT group_id, version, group_id, p, 'c1', 'c2', 1000 * p, 'c1 is the heaviest'
    FROM fairlead_raw.plan, generate_series(0, 3) p
    """,
    """
    INSERT INTO fairlead_raw.plan_balance (group_id, version, kind, measured_at, snapshot_id,
        count_min, count_max, balance_score, lag_max, lag_mean, lag_lower_bound, gap, kept, moved,
        placed, forecast_time_lag_s, utilisation)
    SELECT group_id, version, kind, created_at, snapshot_id, 1, 2, 4, 2000, 1000, 1500, 0.3, 8, 4,
        0, 60, 0.8
    FROM fairlead_raw.plan, unnest(ARRAY['observed', 'predicted', 'achieved']) kind
    """,
    """
    INSERT INTO fairlead_raw.last_adoption (group_id, version, observed_at, planned, as_planned)
    SELECT group_id, version, created_at + interval '1 hour', 5, 5 FROM fairlead_raw.plan
    """,
    """
    INSERT INTO fairlead_raw.plan_record (group_id, kind, version, epoch, lease_until, topic,
        partition, record_offset)
    SELECT group_id, 'plan', version, 1, now() + interval '6 hours', 'fairlead.plans', 0, version
    FROM fairlead_raw.plan WHERE state = 'published'
    """,
)
_OF_GROUPS = (
    f"INSERT INTO fairlead_raw.consumer_group (group_id) SELECT g FROM {_GROUPS}",
    f"""
    INSERT INTO fairlead_raw.member_capacity
        (group_id, member, records_per_s, measured, measured_at, evidence, note)
    SELECT g, 'c' || m, 100, true, now(), 'it stayed behind throughout, and consumed so much', ''
    FROM {_GROUPS}, generate_series(0, 4) m
    """,
    f"""
    INSERT INTO fairlead_raw.group_diagnosis
        (group_id, since, until, last_seen, diagnosis, names, evidence, forecast_time_lag_s,
         utilisation, consumers_why, costs)
    SELECT g, {{began_kept}}::timestamptz + d * interval '12 hours',
        CASE WHEN d < 2 * {{kept}} - 1
            THEN {{began_kept}}::timestamptz + (d + 1) * interval '12 hours' END,
        {{began_kept}}::timestamptz + d * interval '12 hours',
        CASE (d + n) % 2 WHEN 0 THEN 'unbalanced' ELSE 'healthy' END, '{{{{c1}}}}',
        'c1 gets 128% of what it can do and is forecast 11 min late in 30 min', 60, 0.8,
        'It takes 5, and so many are there.', '{{{{}}}}'
    FROM {_GROUPS}, generate_series(0, 2 * {{kept}} - 1) d
    """,
    f"""
    INSERT INTO fairlead_raw.group_day
    SELECT g, {{today}}::date - d, 1, 95, 0, {{today}}::date - d, 1 + n % 7 / 10.0,
        {{today}}::date - d + interval '23 hours', 1 + (n + d) % 5 / 10.0, 1.9, 2000, 60
    FROM {_GROUPS}, generate_series(0, {{days}} - 1) d
    """,
)
_SAMPLES = "generate_series(0, {samples} - 1) k, LATERAL (SELECT {day}::timestamptz + k"
_SAMPLE = f"{_GROUPS}, {_SAMPLES} * interval '15 minutes' AS at) sampled"
_SEEN = f"""
    INSERT INTO fairlead_raw.group_sample (group_id, sampled_at, digest, forecast_time_lag_s,
        utilisation, group_type, protocol, topics, counts, members, owner, lag, arrival_rate,
        behind_s, capacity_share)
    SELECT g, at, k / 24, 5, 0.8, 'classic', 'fairlead', ARRAY[g], ARRAY[{{partitions}}],
        '{{{{c0,c1,c2,c3,c4}}}}', owner, figures, figures, figures, figures
    FROM (
        SELECT k, {{day}}::timestamptz + k * interval '15 minutes' AS at,
            ARRAY(SELECT ((p + k / 24) % 5)::smallint FROM generate_series(0, {{partitions}} - 1) p)
                AS owner,
            ARRAY(SELECT (p * k)::real FROM generate_series(0, {{partitions}} - 1) p) AS figures
        FROM generate_series(0, {{samples}} - 1) k
    ) sampled, {_GROUPS} ORDER BY at, g
"""
_OF_A_DAY = (
    f"""
    INSERT INTO fairlead_raw.decision
        (group_id, snapshot_id, snapshot_at, decided_at, outcome, reason)
    SELECT g, to_char(at, 'YYYYMMDD"T"HH24MI'), at, at + interval '1 minute', 'no change',
        'healthy: every partition is forecast within 60 s in 30 min'
    FROM {_SAMPLE} ORDER BY at, g
    """,
    f"""
    INSERT INTO fairlead_raw.candidate (group_id, snapshot_id, snapshot_at, assignor, outcome,
        count_min, count_max, balance_score, lag_max, lag_mean, lag_lower_bound, gap, kept, moved,
        placed, forecast_time_lag_s, utilisation)
    SELECT g, to_char(at, 'YYYYMMDD"T"HH24MI'), at, 'assignor-' || a, 'balanced', 1, 2, 4, 2000,
        1000, 1500, 0.3, 8, 4, 0, 60, 0.8
    FROM {_SAMPLE}, generate_series(1, 6) a WHERE (n + k) % 24 = 0 ORDER BY at, g, a
    """,
    f"""
    INSERT INTO fairlead_raw.balance (group_id, measured_at, kind, snapshot_id, count_min,
        count_max, balance_score, lag_max, lag_mean, lag_lower_bound, gap, kept, moved, placed,
        forecast_time_lag_s, utilisation)
    SELECT g, at, 'observed', to_char(at, 'YYYYMMDD"T"HH24MI'), 1, 2, 4, 2000, 1000, 1500, 0.3, 8,
        4, 0, 60, 0.8
    FROM {_SAMPLE} ORDER BY at, g
    """,
    f"""
    INSERT INTO fairlead_raw.plan_adoption
        (group_id, version, observed_at, planned, as_planned, lag_max)
    SELECT g, {{version}}, at, 5, 5, 2000 FROM {_SAMPLE} WHERE k % 4 = 0 ORDER BY at, g
    """,
)


def fill(url: str, size: Size, *, groups: int, partitions: int, seen: int) -> None:
    """Write the planner's rows to a database with the current schema.

    Parameters
    ----------
    partitions
        Number of partitions of each group.
    seen
        Number of days, up to today, that have samples.
    """
    began_kept = TODAY - timedelta(days=size.kept - 1)
    given = {
        "groups": groups,
        "partitions": partitions,
        "samples": TIMES,
        "days": size.days,
        "kept": size.kept,
        "versions": size.versions,
        "version": size.versions,
        "today": TODAY.isoformat(),
        "began": f"{TODAY - timedelta(days=size.days - 1)}",
        "began_kept": began_kept.isoformat(),
    }
    with psycopg.connect(url, options="-c timezone=UTC") as connection:
        # Turn off triggers, because the statements also write the summaries that triggers would.
        connection.execute("SET session_replication_role = replica")
        connection.execute("SET synchronous_commit = off")
        for statement in (*_OF_GROUPS, _PLAN, *_OF_PLANS):
            _run(connection, statement, given)
        for number in range(size.kept):
            day = began_kept + timedelta(days=number)
            connection.execute("SELECT fairlead_raw.ensure_day(%s)", [day])
            series = (_SEEN,) if number >= size.kept - seen else ()
            for statement in (*_OF_A_DAY, *series):
                _run(connection, statement, given | {"day": day.isoformat()})
            connection.commit()
        connection.execute("SELECT fairlead_raw.ensure_day(%s)", [TODAY + timedelta(days=1)])
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("VACUUM (ANALYZE, FREEZE)")
        connection.execute("CHECKPOINT")


def _run(connection: psycopg.Connection, statement: str, given: dict[str, object]) -> None:
    literals = {name: sql.Literal(value) for name, value in given.items()}
    connection.execute(sql.SQL(statement).format(**literals))
