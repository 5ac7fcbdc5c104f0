"""Queries on groups and plans, for people: their state, versions, moves and candidates.

Belongs here: queries over the public views; each row is a dict. Belongs elsewhere: lag
(`lag_queries`), what happened (`event_queries`), verifying or changing plans (`plans`), the
presentation of rows (`fairlead.surfaces.cli`).
"""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from sqlalchemy import Engine

from fairlead.common.commands import shell_quote
from fairlead.domain.worst_first import worst_first
from fairlead.errors import PlanStateError
from fairlead.store.queries import Row, read_rows, require_group

if TYPE_CHECKING:
    from fairlead.domain.candidate_figures import SnapshotCandidate
    from fairlead.domain.records import Analysed

#: Diagnoses of groups that a new assignment may help.
MAY_BE_HELPED: Final = ("unbalanced", "slow member")
#: If planning is switched on, a group that needs a plan gets a decision within this time.
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
LEFT JOIN fairlead.last_decision decided ON decided.group_id = known.group_id
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
#: Data for the list of all groups: for its order, its filters and its warnings. Reads the history
#: of only those groups that wait for a decision.
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
_ANALYSED: Final = (
    "SELECT analysed FROM fairlead.plan WHERE group_id = :group AND version = :version"
)


def read_groups(engine: Engine, groups: Sequence[str] | None = None) -> list[Row]:
    """Return groups with diagnosis, plans, last decision and balance.

    Parameters
    ----------
    groups
        The groups; None: all.
    """
    return read_rows(engine, _GROUPS, groups=None if groups is None else list(groups))


def read_states(engine: Engine) -> list[Row]:
    """Return the state of every group, worst first, ten times as fast as `read_groups`.

    Rows have only the columns by which a list is ordered and filtered. `decided_at` is set only for
    groups that a plan may help.
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


def read_plans(
    engine: Engine, group: str | None = None, *, state: str | None = None, limit: int
) -> list[Row]:
    """Return the newest versions of one or all groups; raises GroupError for an unknown group."""
    if group is not None:
        require_group(engine, group)
    return read_rows(engine, _PLANS, group=group, state=state, version=None, limit=limit)


def read_plan(engine: Engine, group: str, version: int | None = None) -> Row:
    """Return a version's row of `plan_history`, with its `events` and `moves`.

    Parameters
    ----------
    version
        The version; None: the newest.

    Raises
    ------
    GroupError
        Nothing is stored about the group.
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
    """Return the candidates of a snapshot, ordered by the largest lag that a member would have.

    A rollback's snapshot has no candidates.
    """
    from fairlead.domain.candidate_figures import candidate_of  # noqa: PLC0415 - imports numpy
    from fairlead.store.decisions import plain_number  # noqa: PLC0415 - the same

    return [
        candidate_of({name: plain_number(value) for name, value in row.items()})
        for row in read_rows(engine, _CANDIDATES, group=group, snapshot=snapshot)
    ]


def read_diff(engine: Engine, group: str, before: int, after: int) -> list[Row]:
    """Return the partitions whose owners differ between two versions.

    Raises the errors of `read_plan`.
    """
    require_group(engine, group)
    return read_rows(engine, _DIFF, group=group, before=before, after=after)


def read_analysed(engine: Engine, group: str, version: int) -> "Analysed | None":
    """Return the inputs of the analysis for a version; None if there was no analysis."""
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


def _no_version(group: str, version: int | None) -> str:
    if version is None:
        return f"group {group} has no plan yet; `fairlead history {shell_quote(group)}` shows why"
    return (
        f"group {group} has no version {version}; "
        f"`fairlead plans list {shell_quote(group)}` lists its versions"
    )
