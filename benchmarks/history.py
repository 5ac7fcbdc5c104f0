"""Duration of common SQL queries on a history with ten million rows of lag.

Belongs here: a month of history of twenty groups, the queries, and timing them. Belongs elsewhere:
the time to store rows (`store`), Postgres's query plans (`tests/fairlead/store/test_explain.py`).
"""

import time
from dataclasses import dataclass

from sqlalchemy import Engine, text

from benchmarks.harness import in_turns, median
from fairlead.store.engine import transaction

GROUPS, SNAPSHOTS, PARTITIONS, VERSIONS, MOVES = 20, 1_000, 500, 50, 500
ROWS = GROUPS * SNAPSHOTS * PARTITIONS
RUNS = 5
# Snapshots are 43 minutes apart: a thousand cover the thirty days of the default retention.
FILL = (
    f"""
    INSERT INTO fairlead_raw.consumer_group (group_id)
    SELECT 'g' || g FROM generate_series(1, {GROUPS}) g
    """,
    "SELECT fairlead_raw.ensure_day('2026-03-01'::date + d) FROM generate_series(0, 30) d",
    f"""
    INSERT INTO fairlead_raw.lag_snapshot (group_id, snapshot_id, snapshot_at)
    SELECT 'g' || g, 's' || s, '2026-03-01+00'::timestamptz + s * interval '43 minutes'
    FROM generate_series(0, {SNAPSHOTS - 1}) s, generate_series(1, {GROUPS}) g
    """,
    f"""
    INSERT INTO fairlead_raw.partition_lag (group_id, snapshot_at, topic, partition, member,
        begin_offset, end_offset, committed_offset, lag, arrival_rate, consumption_rate,
        time_lag_s, status)
    SELECT 'g' || g, '2026-03-01+00'::timestamptz + s * interval '43 minutes',
        't' || p / 100, p % 100, 'c' || p % 25, 0, 1000000 * s, 1000000 * s - p, p, 50.5, 49.5,
        p / 50.5, CASE WHEN p % 100 = 99 THEN 'WARN' ELSE 'OK' END
    FROM generate_series(0, {SNAPSHOTS - 1}) s, generate_series(1, {GROUPS}) g,
        generate_series(0, {PARTITIONS - 1}) p
    """,
    f"""
    DO $$ BEGIN
        FOR v IN 1..{VERSIONS} LOOP
            INSERT INTO fairlead_raw.plan (group_id, version, plan_id, assignor, reason,
                snapshot_id, snapshot_at, created_at, document, sha256)
            SELECT 'g' || g, v, gen_random_uuid(), 'sticky', '', 's' || 20 * v, now(), now(),
                'plan', encode(sha256('plan'), 'hex')
            FROM generate_series(1, {GROUPS}) g;
            INSERT INTO fairlead_raw.plan_event (group_id, version, state, reason)
            SELECT 'g' || g, v, 'expired', 'never approved' FROM generate_series(1, {GROUPS}) g;
        END LOOP;
    END $$
    """,
    f"""
    INSERT INTO fairlead_raw.moved_partition (group_id, version, topic, partition,
        previous_member, member)
    SELECT 'g' || g, v, 't' || p / 100, p % 100, 'c1', 'c2'
    FROM generate_series(1, {GROUPS}) g, generate_series(1, {VERSIONS}) v,
        generate_series(0, {MOVES - 1}) p
    """,
    """
    INSERT INTO fairlead_raw.balance (group_id, measured_at, kind, snapshot_id, lag_max, lag_mean)
    SELECT group_id, snapshot_at, 'observed', snapshot_id, 20, 10 FROM fairlead_raw.lag_snapshot
    """,
    """
    INSERT INTO fairlead_raw.balance (group_id, measured_at, kind, version, snapshot_id, lag_max)
    SELECT group_id, lag_snapshot.snapshot_at, 'predicted', version, snapshot_id, 15
    FROM fairlead_raw.lag_snapshot JOIN fairlead.plan USING (group_id, snapshot_id)
    WHERE group_id LIKE 'g_' OR group_id LIKE 'g__'
    """,
    """
    INSERT INTO fairlead_raw.plan_adoption (group_id, version, observed_at, planned, as_planned)
    SELECT group_id, version,
        '2026-03-01+00'::timestamptz + version % 30 * interval '1 day' + n * interval '1 minute',
        500, 480 + n
    FROM fairlead.plan, generate_series(1, 20) n
    WHERE group_id LIKE 'g_' OR group_id LIKE 'g__'
    """,
)
OF_GROUP = "FROM fairlead.lag_history WHERE group_id = 'g7'"
DAY = "snapshot_at >= '2026-03-16+00' AND snapshot_at < '2026-03-17+00'"
QUESTIONS = {
    "lag_history: a group now, worst first": (
        f"SELECT * {OF_GROUP} AND snapshot_at = (SELECT max(snapshot_at)"
        " FROM fairlead_raw.lag_snapshot WHERE group_id = 'g7') ORDER BY lag DESC"
    ),
    "lag_history: a group over a day": f"SELECT * {OF_GROUP} AND {DAY}",
    "lag_history: one partition over the month": (
        f"SELECT snapshot_at, lag {OF_GROUP} AND topic = 't3' AND partition = 7"
        " ORDER BY snapshot_at"
    ),
    "lag_history: total lag of a group over the month": (
        f"SELECT snapshot_at, sum(lag) {OF_GROUP} GROUP BY snapshot_at ORDER BY snapshot_at"
    ),
    "lag_history: lag of each member over a day": (
        f"SELECT snapshot_at, member, sum(lag) {OF_GROUP} AND {DAY} GROUP BY snapshot_at, member"
    ),
    "lag_history: who owned a partition over the month": (
        f"SELECT member, min(snapshot_at), max(snapshot_at) {OF_GROUP}"
        " AND topic = 't3' AND partition = 7 GROUP BY member"
    ),
    "plan_history: all versions of a group": (
        "SELECT * FROM fairlead.plan_history WHERE group_id = 'g7'"
    ),
    "plan_moves: moves of a version": (
        "SELECT * FROM fairlead.plan_moves WHERE group_id = 'g7' AND version = 40"
    ),
    "plan_moves: one partition through all versions": (
        "SELECT * FROM fairlead.plan_moves WHERE group_id = 'g7' AND topic = 't3' AND partition = 7"
    ),
    "balance_history: a group over the month": (
        "SELECT * FROM fairlead.balance_history WHERE group_id = 'g7'"
    ),
    "plan_event: what happened in the last hour": (
        "SELECT * FROM fairlead.plan_event WHERE at >= now() - interval '1 hour'"
    ),
    "adoption: a group": "SELECT * FROM fairlead.adoption WHERE group_id = 'g7'",
}


@dataclass(frozen=True)
class Reading:
    """The median time of a query, and its number of rows."""

    question: str
    rows: int
    seconds: float


def measure(engine: Engine) -> list[Reading]:
    """Fill the database; time all queries until the client has read all rows."""
    for statement in FILL:
        with transaction(engine) as connection:
            connection.execute(text(statement))
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("VACUUM ANALYZE"))
    return [ask(engine, question) for question in QUESTIONS]


def ask(engine: Engine, question: str) -> Reading:
    """Time a query after running it once untimed."""
    with transaction(engine) as connection:

        def timed(_: int) -> tuple[float, int]:
            began = time.perf_counter()
            rows = connection.execute(text(QUESTIONS[question])).all()
            return time.perf_counter() - began, len(rows)

        (taken,) = in_turns(RUNS, timed, warm_ups=1)
    return Reading(question, taken[-1][1], median((seconds for seconds, _ in taken), 4))
