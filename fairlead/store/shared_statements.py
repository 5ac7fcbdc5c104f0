"""Statements that several transactions share, inside a connection of theirs.

Belongs here: registering and locking a group, taking a plan to its next state, reading plans and
when things last happened. Does not: opening or ending transactions (`plans`).
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import fields
from datetime import date, datetime, timedelta
from typing import Any, Final, cast

import numpy as np
from sqlalchemy import (
    ARRAY,
    ColumnElement,
    Connection,
    Integer,
    Text,
    and_,
    any_,
    func,
    literal,
    select,
    text,
    tuple_,
)
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import aliased

from fairlead.domain.records import MeasuredLag, StoredPlan
from fairlead.store.models import ConsumerGroup, DecisionRow, LagSnapshot, Plan, PlanEvent, PlanTold

#: How long a transaction waits for all groups together that others are at.
PATIENCE: Final = timedelta(seconds=5)
_OF_PLAN: Final = [
    getattr(Plan, field.name) for field in fields(StoredPlan) if hasattr(Plan, field.name)
]


def among(column: Any, values: Iterable[str]) -> ColumnElement[bool]:
    """Whether a column has one of thousands of texts: one parameter, where `in_` takes thousands.

    Parameters
    ----------
    column
        A model's.
    """
    return cast("ColumnElement[bool]", column == any_(literal(list(values), ARRAY(Text))))


def is_one_of(
    pair: tuple[Any, Any], keys: Collection[tuple[str, int]] | Collection[tuple[str, str]]
) -> ColumnElement[bool]:
    """Whether two columns have one of thousands of pairs of values, as `among`."""
    names, others = zip(*keys, strict=True) if keys else ((), ())
    kind = Text if others and isinstance(others[0], str) else Integer
    wanted = func.unnest(literal(list(names), ARRAY(Text)), literal(list(others), ARRAY(kind)))
    rows = wanted.table_valued("first", "second").render_derived()
    return tuple_(*pair).in_(select(rows.c.first, rows.c.second))


def register_groups(connection: Connection, groups: Iterable[str]) -> None:
    """Make sure that the groups have rows; in one order for all, or writers block each other."""
    names = select(func.unnest(literal(sorted(set(groups)), ARRAY(Text))))
    connection.execute(
        insert(ConsumerGroup).from_select(["group_id"], names).on_conflict_do_nothing()
    )


def ensure_days(connection: Connection, days: Iterable[date]) -> None:
    """Make sure that every history has these days (UTC); in one order for all, one writer a day."""
    for day in sorted(set(days)):
        connection.execute(select(func.fairlead_raw.ensure_day(day)))


def lock_groups(connection: Connection, groups: Iterable[str]) -> set[str]:
    """Lock groups until the transaction ends; see `lock_groups` in SQL.

    Returns
    -------
    Those that are locked. The others are in an open transaction of somebody else's, a person's say,
    who may take all day: they are waited for together, for `PATIENCE`, and are for the next run.
    """
    ascending = literal(sorted(set(groups)), ARRAY(Text))
    locked = func.fairlead_raw.lock_groups(ascending, PATIENCE).column_valued()
    return set(connection.scalars(select(locked)))


def record_events(connection: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
    """Take plans to states; the rows have the same columns.

    The database refuses what the life of a plan does not have.
    """
    if rows:
        connection.execute(insert(PlanEvent), list(rows))


def close_open_plans(
    connection: Connection, reasons: Mapping[str, str], *conditions: ColumnElement[bool]
) -> list[tuple[str, int]]:
    """End groups' plans that were not published yet; the groups are locked.

    Parameters
    ----------
    reasons
        Group to why.
    conditions
        Which of their plans.

    Returns
    -------
    Group and version of each, ascending.
    """
    open_plans = connection.execute(
        select(Plan.group_id, Plan.version, Plan.state)
        .where(
            among(Plan.group_id, reasons),
            Plan.state.in_(("proposed", "approved")),
            *conditions,
        )
        .order_by(Plan.group_id)
    ).all()
    record_events(
        connection,
        [
            {
                "group_id": group,
                "version": version,
                "state": "expired" if state == "proposed" else "stale",
                "reason": reasons[group],
            }
            for group, version, state in open_plans
        ],
    )
    return [(row.group_id, row.version) for row in open_plans]


def find_plans(connection: Connection, *conditions: ColumnElement[bool]) -> list[StoredPlan]:
    """Return the plans that satisfy all conditions, by group and version."""
    approval, publication = aliased(PlanEvent), aliased(PlanEvent)

    def event(alias: type[PlanEvent], state: str) -> ColumnElement[bool]:
        return and_(
            alias.group_id == Plan.group_id, alias.version == Plan.version, alias.state == state
        )

    rows = connection.execute(
        select(
            *_OF_PLAN,
            Plan.group_id.label("group"),
            approval.sha256.label("approved_sha256"),
            publication.topic,
            publication.partition,
            publication.record_offset,
            PlanTold.lease_until,
        )
        .outerjoin(
            PlanTold,
            and_(
                PlanTold.group_id == Plan.group_id,
                PlanTold.version == Plan.version,
                Plan.state == "published",
            ),
        )
        .outerjoin(approval, event(approval, "approved"))
        .outerjoin(publication, event(publication, "published"))
        .where(*conditions)
        .order_by(Plan.group_id, Plan.version)
    ).mappings()
    return [StoredPlan(**row) for row in rows]


def plans_at(
    connection: Connection, keys: Sequence[tuple[str, int]]
) -> dict[tuple[str, int], StoredPlan]:
    """Return plans by group and version; without keys the database is not asked for any."""
    if not keys:
        return {}
    plans = find_plans(
        connection,
        among(Plan.group_id, {group for group, _ in keys}),  # by the index, however many there are
        is_one_of((Plan.group_id, Plan.version), keys),
    )
    return {(plan.group, plan.version): plan for plan in plans}


def last_decisions(connection: Connection) -> dict[str, datetime]:
    """Return when each group was last decided on: one look at an index for each of them.

    A decision that failed is none. Snapshots that are dated ahead of now come from a clock that was
    ahead: they hide no decision after them.
    """
    made = (DecisionRow.group_id == ConsumerGroup.group_id, DecisionRow.outcome != "failed")
    newest = (
        select(DecisionRow.decided_at)
        .where(*made, DecisionRow.snapshot_at <= func.now())
        .order_by(DecisionRow.snapshot_at.desc())
        .limit(1)
        .scalar_subquery()
    )
    ahead = (
        select(func.max(DecisionRow.decided_at))
        .where(*made, DecisionRow.snapshot_at > func.now())
        .scalar_subquery()
    )
    rows = connection.execute(
        select(ConsumerGroup.group_id, func.greatest(newest, ahead).label("decided_at"))
    )
    return {row.group_id: row.decided_at for row in rows if row.decided_at is not None}


def measured_lag(connection: Connection, group: str) -> MeasuredLag | None:
    """Return the newest snapshot of a group's lag; None: there is none."""
    newest = connection.scalar(
        select(func.max(LagSnapshot.snapshot_at)).where(LagSnapshot.group_id == group)
    )
    rows = connection.execute(  # of a moment that is known: in its day alone
        text(
            "SELECT snapshot_at, topic, partition, lag, status FROM fairlead_raw.partition_lag"
            " WHERE group_id = :group AND snapshot_at = :newest AND status IS NOT NULL"
            " ORDER BY topic, partition"
        ),
        {"group": group, "newest": newest},
    ).all()
    if not rows:
        return None
    lags: dict[str, list[float]] = {}
    for row in rows:
        lags.setdefault(row.topic, []).append(float(row.lag))
    return MeasuredLag(
        snapshot_at=rows[0].snapshot_at,
        lags={topic: np.array(values) for topic, values in lags.items()},
        statuses=frozenset(row.status for row in rows),
    )
