"""Decisions: what one look at a group came to, in the rows of five tables.

Belongs here: what belongs together when a decision is stored. Does not: its transaction and the
group's lock (`plans`).
"""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final
from uuid import uuid4

from sqlalchemy import Connection, func, select
from sqlalchemy.dialects.postgresql import insert

from fairlead.plans.document import content_hash
from fairlead.store.bulk import copy_rows, with_constants
from fairlead.store.models import METRICS, Balance, CandidatePlan, Decision, Plan, PlanMove
from fairlead.store.queries import close_open_plans, find_plans
from fairlead.store.records import NoPlan, PlanDraft, StoredDecision

_MOVE_COLUMNS: Final = ("topic", "partition", "previous_member", "member", "weight", "reason")


def propose(connection: Connection, draft: PlanDraft) -> int:
    """Store a draft as the next version. The group is locked."""
    versions = select(func.coalesce(func.max(Plan.version), 0) + 1, func.now())
    version, created_at = connection.execute(versions.where(Plan.group_id == draft.group)).one()
    close_open_plans(connection, draft.group, f"version {version} was proposed")
    plan_id = uuid4()
    document = draft.document(version, plan_id, created_at).to_bytes()
    connection.execute(
        insert(Plan),
        {
            "group_id": draft.group,
            "version": version,
            "plan_id": plan_id,
            "assignor": draft.assignor,
            "reason": draft.reason,
            "snapshot_id": draft.snapshot_id,
            "snapshot_at": draft.snapshot_at,
            "created_at": created_at,
            "expires_at": draft.expires_at,
            "document": document,
            "sha256": content_hash(document),
            "four_eyes": draft.four_eyes,
            "rolled_back_from": draft.rolled_back_from,
        },
    )
    moves = draft.moves.select([name for name in _MOVE_COLUMNS if name in draft.moves.column_names])
    copy_rows(
        connection,
        PlanMove.__table__,
        with_constants(moves, {"group_id": draft.group, "version": version}),
    )
    return int(version)


def insert_decision(connection: Connection, decision: NoPlan, version: int | None) -> None:
    """Store a decision, its candidates, and the balances observed and predicted."""
    key: dict[str, Any] = {"group_id": decision.group, "snapshot_id": decision.snapshot_id}
    connection.execute(
        insert(Decision),
        key
        | {
            "snapshot_at": decision.snapshot_at,
            "outcome": decision.outcome,
            "reason": decision.reason,
            "version": version,
        },
    )
    if decision.candidates:
        connection.execute(
            insert(CandidatePlan),
            [
                key
                | {"assignor": one.assignor, "outcome": one.outcome, "error": one.error}
                | metric_columns(one.metrics)
                for one in decision.candidates
            ],
        )
    key["measured_at"] = decision.snapshot_at
    balances = []
    if decision.observed is not None:
        balances.append(
            key | {"kind": "observed", "version": None} | metric_columns(decision.observed)
        )
    if isinstance(decision, PlanDraft):
        predicted = metric_columns(decision.predicted)
        balances.append(key | {"kind": "predicted", "version": version} | predicted)
    if balances:
        connection.execute(insert(Balance), balances)


def stored_decision(
    connection: Connection, decision: NoPlan, *, created: bool
) -> StoredDecision | None:
    """Return the decision stored for the same snapshot; None: there is none."""
    row = connection.execute(
        select(Decision.outcome, Decision.reason, Decision.version).where(
            Decision.group_id == decision.group, Decision.snapshot_id == decision.snapshot_id
        )
    ).one_or_none()
    if row is None:
        return None
    plans = find_plans(connection, Plan.group_id == decision.group, Plan.version == row.version)
    return StoredDecision(
        group=decision.group,
        snapshot_id=decision.snapshot_id,
        outcome=row.outcome,
        reason=row.reason,
        plan=plans[0] if plans else None,
        created=created,
    )


def plain_number(value: Any) -> Any:
    """Return a numeric column's value as the int or float that a metric is."""
    if not isinstance(value, Decimal):
        return value
    return int(value) if value == value.to_integral_value() else float(value)


def metric_columns(metrics: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the columns of `MeasuredBalance`; None: nothing was measured."""
    return {name: None if metrics is None else metrics[name] for name in METRICS}
