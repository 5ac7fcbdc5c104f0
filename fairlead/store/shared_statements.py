"""SQL statements for several modules; each function takes an open transaction's connection.

Belongs here: registering and locking groups, steps of plans, reading plans. Belongs elsewhere:
opening or ending transactions (`plans`).
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import fields
from datetime import date, timedelta
from typing import Any, Final, cast

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
    tuple_,
)
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import aliased

from fairlead.domain.records import StoredPlan
from fairlead.store.models.plan import ConsumerGroup, LastRecord, Plan, PlanEvent

#: Maximum total time that a transaction waits for groups that other transactions have locked.
PATIENCE: Final = timedelta(seconds=5)
_OF_PLAN: Final = [
    getattr(Plan, field.name) for field in fields(StoredPlan) if hasattr(Plan, field.name)
]


def among(column: Any, values: Iterable[str]) -> ColumnElement[bool]:
    """Return the condition that a column has one of these texts, for any number of texts.

    All texts are one query parameter; `in_` would make one parameter of each.

    Parameters
    ----------
    column
        A column of a model.
    """
    return cast("ColumnElement[bool]", column == any_(literal(list(values), ARRAY(Text))))


def is_one_of(
    pair: tuple[Any, Any], keys: Collection[tuple[str, int]] | Collection[tuple[str, str]]
) -> ColumnElement[bool]:
    """Return the condition that two columns have one of these pairs of values; see `among`."""
    names, others = zip(*keys, strict=True) if keys else ((), ())
    kind = Text if others and isinstance(others[0], str) else Integer
    wanted = func.unnest(literal(list(names), ARRAY(Text)), literal(list(others), ARRAY(kind)))
    rows = wanted.table_valued("first", "second").render_derived()
    return tuple_(*pair).in_(select(rows.c.first, rows.c.second))


def register_groups(connection: Connection, groups: Iterable[str]) -> None:
    """Insert missing groups, ordered by name so that concurrent writers cannot deadlock."""
    names = select(func.unnest(literal(sorted(set(groups)), ARRAY(Text))))
    connection.execute(
        insert(ConsumerGroup).from_select(["group_id"], names).on_conflict_do_nothing()
    )


def ensure_days(connection: Connection, days: Iterable[date]) -> None:
    """Create the table partitions of these days (UTC) in every history, if they are missing.

    Creates them in order of time, so that concurrent writers cannot deadlock.
    """
    for day in sorted(set(days)):
        connection.execute(select(func.fairlead_raw.ensure_day(day)))


def lock_groups(connection: Connection, groups: Iterable[str]) -> set[str]:
    """Lock groups until the transaction ends; see `lock_groups` in SQL.

    Waits at most `PATIENCE` in total for groups that another transaction has locked.

    Returns
    -------
    The locked groups. Groups that another transaction still locks are left out; the next run tries
    to lock them again.
    """
    ascending = literal(sorted(set(groups)), ARRAY(Text))
    locked = func.fairlead_raw.lock_groups(ascending, PATIENCE).column_valued()
    return set(connection.scalars(select(locked)))


def record_events(connection: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert plan events; all rows have the same columns. The database refuses impossible steps."""
    if rows:
        connection.execute(insert(PlanEvent), list(rows))


def close_open_plans(
    connection: Connection, reasons: Mapping[str, str], *conditions: ColumnElement[bool]
) -> list[tuple[str, int]]:
    """End plans that are proposed or approved; the caller must have locked the groups.

    Proposed plans become `expired`, approved plans `stale`.

    Parameters
    ----------
    reasons
        Maps each group to the reason why its plan ends.
    conditions
        Only plans that satisfy all conditions are ended.

    Returns
    -------
    Group and version of each ended plan, ascending.
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
    """Return the plans that satisfy all conditions, ordered by group and version."""
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
            LastRecord.lease_until,
        )
        .outerjoin(
            LastRecord,
            and_(
                LastRecord.group_id == Plan.group_id,
                LastRecord.version == Plan.version,
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
    """Return a mapping from these keys (group and version) to their plans."""
    if not keys:
        return {}
    plans = find_plans(
        connection,
        among(Plan.group_id, {group for group, _ in keys}),  # uses the index even for many keys
        is_one_of((Plan.group_id, Plan.version), keys),
    )
    return {(plan.group, plan.version): plan for plan in plans}
