"""Figures of all groups at once, for monitoring: a few rows per group.

Belongs here: queries that run every few seconds, so they must be cheap with ten thousand groups.
Each of Fairlead's database roles has the right to run them. Belongs elsewhere: names of metrics
(`fairlead.surfaces.web.metrics`), queries on one group (`history_queries`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from operator import itemgetter
from typing import Any, Final

from sqlalchemy import Connection, Engine, text

from fairlead.store.engine import transaction

Rows = Sequence[Mapping[str, Any]]
Readings = dict[str, Rows]

#: Groups that were not sampled for this long are left out. The longest usual `cadence` of a policy
#: is a week; this is one day more.
SEEN_WITHIN: Final = timedelta(days=8)
#: Findings of a sample count as current for this long, even if several samples fail meanwhile.
CURRENT_WITHIN: Final = timedelta(minutes=15)
#: Number of intervals without a sample after which samples are overdue. It allows for one failed
#: and one slow sample.
INTERVALS: Final = 3
#: Maximum number of partitions with a metric. If there are more partitions, the metric has those
#: whose records take longest to process.
_MOST_PARTITIONS: Final = 10_000
#: Time-out of a query; shorter than Prometheus's scrape time-out of ten seconds.
_STATEMENT_TIMEOUT: Final = "5s"

# LATERAL: Postgres searches an index once per group; otherwise it would read whole histories.
_LAG: Final = """
SELECT known.group_id, newest.snapshot_at,
       measured.status, measured.total, measured.partitions, measured.lag
FROM fairlead_raw.consumer_group known
CROSS JOIN LATERAL (
    SELECT snapshot_at FROM fairlead_raw.lag_snapshot
    WHERE lag_snapshot.group_id = known.group_id ORDER BY snapshot_at DESC LIMIT 1
) newest
CROSS JOIN LATERAL (
    SELECT status, grouping(status) = 1 AS total, count(*) AS partitions,
           coalesce(sum(lag), 0) AS lag
    FROM fairlead_raw.partition_lag
    WHERE partition_lag.group_id = known.group_id
        AND partition_lag.snapshot_at = newest.snapshot_at
        AND status IS NOT NULL  -- else the group has left the topic
    GROUP BY GROUPING SETS ((), (status))
) measured
WHERE newest.snapshot_at >= :gone_before
"""
_LAG_OF_SAMPLES: Final = """
SELECT group_id, sampled_at AS snapshot_at, (SELECT sum(behind) FROM unnest(lag) behind) AS lag
FROM fairlead_raw.group_sample_last WHERE sampled_at >= :sampled_after
"""
_BALANCE: Final = """
SELECT known.group_id, observed.lag_max, observed.imbalance, observed.topic_spread,
       observed.rack_gb_per_day * 1e9 AS rack_bytes_per_day
FROM fairlead_raw.consumer_group known
CROSS JOIN LATERAL (
    SELECT lag_max, imbalance, topic_spread, rack_gb_per_day FROM fairlead.balance_history
    WHERE balance_history.group_id = known.group_id
        AND kind = 'observed'
        AND measured_at >= :gone_before
        AND NOT EXISTS (  -- a rollback is weighed with the lag of an older snapshot
            SELECT FROM fairlead_raw.plan WHERE plan.group_id = known.group_id
                AND plan.snapshot_id = balance_history.snapshot_id
                AND rolled_back_from IS NOT NULL
        )
    ORDER BY measured_at DESC LIMIT 1
) observed
"""
_DIAGNOSES: Final = """
SELECT group_id, diagnosis, since, forecast_time_lag_s, utilisation, loss_s, catch_up_s,
       consumers_wanted, last_seen, 1 AS holds
FROM fairlead.diagnosis
"""
_PARTITION_WORK: Final = """
SELECT group_id, topic, partition::text AS partition, seconds_per_record
FROM fairlead.partition_cost
WHERE seconds_per_record IS NOT NULL AND last_seen >= :sampled_after
ORDER BY seconds_per_record DESC LIMIT :most
"""
_CONSUMER_WORK: Final = """
SELECT group_id, member, busy FROM fairlead.consumer_work WHERE last_seen >= :sampled_after
"""
_LAST_SAMPLE: Final = """
SELECT sampled_at, now() - sampled_at AS age, make_interval(secs => interval_s) AS apart
FROM fairlead_raw.last_sample
"""
_PLANS: Final = """
SELECT group_id, version, state, proposed_at, decided_at, lag_max_predicted, adherence,
       CASE state WHEN 'published' THEN lease_until ELSE expires_at END AS expires_at
FROM fairlead.plan_history LEFT JOIN fairlead.plan_record USING (group_id, version)
WHERE state IN ('published', 'proposed', 'approved', 'sending') AND NOT shadow
"""
_DECISIONS: Final = """
SELECT group_id, decided_at, (
    SELECT created_at FROM fairlead.plan
    WHERE plan.group_id = decided.group_id ORDER BY version DESC LIMIT 1
) AS created_at
FROM fairlead.last_decision decided
"""
#: Queries whose rows are returned unchanged.
_AS_STORED: Final = {
    "counts": """
SELECT group_id, plans AS plan, no_changes AS "no change", failures AS failed
FROM fairlead_raw.group_day WHERE day = (now() AT TIME ZONE 'UTC')::date
""",
    "freezes": "SELECT group_id, since FROM fairlead.freezes",
    "back_offs": "SELECT group_id, times FROM fairlead.back_off",
    "ended_regressions": """
SELECT group_id, max(ended.at) AS ended_at
FROM fairlead.regression said JOIN fairlead.plan_event ended USING (group_id, version)
WHERE ended.state IN ('superseded', 'withdrawn') AND said.at > now() - interval '30 days'
GROUP BY group_id
""",
    "histories": """
SELECT history, sum(bytes) AS bytes, min(day)::timestamp AT TIME ZONE 'UTC' AS oldest
FROM fairlead.history_days() GROUP BY history ORDER BY history
""",
}


def read_all_groups(engine: Engine, sampled_within: timedelta = CURRENT_WITHIN) -> Readings:
    """Read the figures of all groups at one moment; raises the errors of `transaction`.

    Parameters
    ----------
    engine
        Fairlead's database.
    sampled_within
        Maximum age of a group's last sample; diagnoses of other groups are left out.

    Returns
    -------
    lag
        `group_id`, and `lag` in records, from the last sample or snapshot.
    snapshots
        `group_id`, and the time of its newest snapshot, `snapshot_at`.
    statuses
        `group_id`, `status`, `partitions`: one row per status.
    balance
        `group_id`, and its last measured `lag_max` in records, `imbalance`, `topic_spread`, and
        `rack_bytes_per_day`, the traffic from other racks.
    diagnoses
        `group_id`, `diagnosis`, `since`, `forecast_time_lag_s`, `utilisation`, `loss_s`,
        `catch_up_s`, `consumers_wanted`, `last_seen`, of groups sampled within `sampled_within`.
        `holds` is always 1: the value of the Prometheus metric that has the diagnosis as a label.
    partition_work
        `group_id`, `topic`, `partition`, `seconds_per_record`, reported by consumers.
    consumer_work
        `group_id`, `member`, and the `busy` share of the member's time; null: unknown.
    samples
        `group_id`, and the time of its last sample, `last_seen`.
    plans
        `group_id`, `version`, `state`, `proposed_at`, `decided_at`, `expires_at`,
        `lag_max_predicted` in records, `adherence`, of published and open plans.
    decisions
        `group_id`, and the times of its last decision, `decided_at`, and newest plan, `created_at`.
    counts
        `group_id`, and the number of decisions on snapshots of this day (UTC), by outcome.
    last
        The newest `decided_at` and `last_seen` of all groups; null: never.
    freezes
        `group_id` (null if all groups are frozen), and the start of the freeze, `since`.
    back_offs
        `group_id` of groups in back-off, and how many plans made the group worse, `times`.
    ended_regressions
        `group_id` of groups with a regression in the last thirty days, and `ended_at`: when the
        last plan that caused a regression was replaced or withdrawn.
    histories
        `history`, its `bytes`, and the start of its `oldest` day, which shows whether old days are
        pruned.
    """
    repeatable = engine.execution_options(isolation_level="REPEATABLE READ")
    with transaction(repeatable) as connection:
        connection.execute(text("SET TRANSACTION READ ONLY"))
        connection.execute(text(f"SET LOCAL statement_timeout = '{_STATEMENT_TIMEOUT}'"))
        now = connection.execute(text("SELECT now()")).scalar_one()
        gone_before = now - SEEN_WITHIN
        snapshots = _rows(connection, _LAG, gone_before=gone_before)
        totals = [row for row in snapshots if row["total"]]
        sampled_after = now - sampled_within
        looked = _rows(connection, _LAG_OF_SAMPLES, sampled_after=sampled_after)
        by_time = sorted((*totals, *looked), key=itemgetter("snapshot_at"))
        ever = _rows(connection, _DECISIONS)
        decisions = [row for row in ever if row["decided_at"] >= gone_before]
        samples_ever = _rows(connection, _DIAGNOSES)
        samples = [row for row in samples_ever if row["last_seen"] >= gone_before]
        sampled = {row["group_id"] for row in (*totals, *decisions, *samples)}
        last = {
            "decided_at": max((row["decided_at"] for row in ever), default=None),
            "last_seen": max((row["last_seen"] for row in samples_ever), default=None),
        }
        return {
            "lag": list({row["group_id"]: row for row in by_time}.values()),
            "snapshots": totals,
            "statuses": [row for row in snapshots if not row["total"]],
            "balance": _rows(connection, _BALANCE, gone_before=gone_before),
            "diagnoses": [row for row in samples if now - row["last_seen"] <= sampled_within],
            "partition_work": _rows(
                connection, _PARTITION_WORK, sampled_after=sampled_after, most=_MOST_PARTITIONS
            ),
            "consumer_work": _rows(connection, _CONSUMER_WORK, sampled_after=sampled_after),
            "samples": samples,
            "plans": [row for row in _rows(connection, _PLANS) if row["group_id"] in sampled],
            "decisions": decisions,
            "last": [last],
            **{name: _rows(connection, query) for name, query in _AS_STORED.items()},
        }


@dataclass(frozen=True)
class SampleAge:
    """Time and age of the last sample; each sample is of all groups.

    Parameters
    ----------
    began
        When the sample began; time-zone-aware.
    age
        The time since `began`, by the database's clock.
    interval
        The time from the beginning of the sample to the beginning of the next one.
    """

    began: datetime
    age: timedelta
    interval: timedelta

    @property
    def overdue(self) -> bool:
        """Whether no sample has begun for `INTERVALS` intervals."""
        return self.age > INTERVALS * self.interval


def last_sample(engine: Engine) -> SampleAge | None:
    """Return when all groups were last sampled; None: never. Raises the errors of `transaction`."""
    with transaction(engine) as connection:
        row = connection.execute(text(_LAST_SAMPLE)).one_or_none()
    return None if row is None else SampleAge(row.sampled_at, row.age, row.apart)


def _rows(connection: Connection, statement: str, **parameters: Any) -> Rows:
    return [*connection.execute(text(statement), parameters).mappings()]
