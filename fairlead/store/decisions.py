"""Decisions on groups, as rows of five tables.

Belongs here: storing many decisions with their plans, candidates and balances. Belongs elsewhere:
opening the transaction and locking the groups (`plans`).
"""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, Final
from uuid import uuid4

import numpy as np
import pyarrow as pa
from sqlalchemy import Connection, func, null, select
from sqlalchemy.dialects.postgresql import insert

from fairlead.common.tables import named
from fairlead.common.words import shortened
from fairlead.domain.candidate_figures import FIGURES
from fairlead.domain.figures import imbalance
from fairlead.domain.records import Decision, PlanDraft, StoredDecision
from fairlead.store.analysis_memory import record_findings
from fairlead.store.bulk import copy_rows
from fairlead.store.models.history import Balance
from fairlead.store.models.plan import CandidatePlan, DecisionRow, MovedPartition, Plan
from fairlead.store.shared_statements import among, close_open_plans, is_one_of, plans_at
from fairlead.wire.document import content_hash

_MOVES: Final = pa.schema(
    {
        "topic": pa.string(),
        "partition": pa.int32(),
        "previous_member": pa.string(),
        "member": pa.string(),
        "weight": pa.float64(),
        "reason": pa.string(),
    }
)
#: Columns of a plan whose values are copied from the draft's fields of the same names.
_OF_DRAFT: Final = (
    *("assignor", "reason", "snapshot_id", "snapshot_at", "expires_at", "four_eyes", "shadow"),
    *("rolled_back_from", "request_id"),
)


def propose(connection: Connection, drafts: Sequence[PlanDraft]) -> dict[str, int]:
    """Store drafts, at most one per group, as the groups' next versions.

    The caller must have locked the groups. Ends the groups' open plans.

    Returns
    -------
    A mapping from each group to the version of its draft.
    """
    if not drafts:
        return {}
    last = select(Plan.group_id, func.max(Plan.version)).group_by(Plan.group_id)
    last_versions = dict(
        connection.execute(last.where(among(Plan.group_id, [new.group for new in drafts]))).all()
    )
    versions = {draft.group: last_versions.get(draft.group, 0) + 1 for draft in drafts}
    close_open_plans(
        connection,
        {group: f"version {version} was proposed" for group, version in versions.items()},
    )
    created_at = connection.execute(select(func.now())).scalar_one()
    rows = []
    for draft in drafts:
        plan_id, version = uuid4(), versions[draft.group]
        document = draft.document(version, plan_id, created_at).to_bytes()
        new = {
            "group_id": draft.group,
            "version": version,
            "plan_id": plan_id,
            "created_at": created_at,
            "document": document,
            "sha256": content_hash(document),
            "analysed": _analysed(draft),
        }
        rows.append(new | {name: getattr(draft, name) for name in _OF_DRAFT})
    connection.execute(insert(Plan), rows)
    moves = pa.concat_tables(
        [_MOVES.empty_table(), *(draft.moves for draft in drafts)], promote_options="permissive"
    ).combine_chunks()
    draft_of = np.repeat(np.arange(len(drafts)), [draft.moves.num_rows for draft in drafts])
    moves = moves.append_column("group_id", named(draft_of, list(versions)))
    moves = moves.append_column("version", pa.array(np.array([*versions.values()])[draft_of]))
    copy_rows(connection, MovedPartition.__table__, moves)
    return versions


def _analysed(draft: PlanDraft) -> Any:
    """Return the inputs of a draft's analysis for a JSON column; NULL if there was no analysis."""
    known = draft.analysed
    if known is None:
        return null()
    return {
        "members": {name: vars(member) for name, member in known.members.items()},
        "costs": known.costs,
        "reported": known.reported,
        "statuses": sorted(known.statuses),
    }


def insert_decisions(
    connection: Connection,
    decisions: Sequence[Decision],
    versions: Mapping[str, int],
    settings: str | None,
) -> None:
    """Store decisions, their candidates, their observed and predicted balances, and findings.

    Parameters
    ----------
    versions
        Maps each group to the version of its draft.
    settings
        The source of the policies, stored with each decision; None: unknown.
    """
    rows: list[dict[str, Any]] = []
    candidates: list[dict[str, Any]] = []
    balances: list[dict[str, Any]] = []
    for decision in decisions:
        of_group = {"group_id": decision.group, "snapshot_id": decision.snapshot_id}
        version, at = versions.get(decision.group), decision.snapshot_at.isoformat()
        key = of_group | {"snapshot_at": at}
        what: dict[str, Any] = {
            "outcome": decision.outcome,
            "reason": decision.reason,
            "version": version,
        }
        rows.append(key | what | {"settings": settings})
        for candidate in decision.candidates:
            what = {name: getattr(candidate, name) for name in ("assignor", "outcome", "error")}
            candidates.append(key | what | metric_columns(candidate.metrics))
        key = of_group | {"measured_at": at}
        if decision.observed is not None:
            what = {"kind": "observed", "version": None}
            balances.append(key | what | metric_columns(decision.observed))
        if isinstance(decision, PlanDraft):
            what = {"kind": "predicted", "version": version}
            balances.append(key | what | metric_columns(decision.predicted))
    # COPY is one statement, so the triggers that update summaries run once for all rows.
    copy_rows(connection, DecisionRow.__table__, _as_text(rows))
    findings = {
        decision.group: (decision.snapshot_at, decision.findings)
        for decision in decisions
        if decision.findings is not None
    }
    record_findings(connection, findings)
    for table, figures in ((CandidatePlan.__table__, candidates), (Balance.__table__, balances)):
        if figures:
            copy_rows(connection, table, _as_text(figures))


def stored_decisions(
    connection: Connection, decisions: Sequence[Decision], *, created: bool
) -> dict[str, StoredDecision]:
    """Return the stored decisions on the same groups and snapshots as these decisions."""
    snapshot_of = {decision.group: decision.snapshot_id for decision in decisions}
    times = [decision.snapshot_at for decision in decisions]
    if not times:
        return {}
    rows = connection.execute(
        select(
            DecisionRow.group_id, DecisionRow.outcome, DecisionRow.reason, DecisionRow.version
        ).where(
            among(DecisionRow.group_id, snapshot_of),
            is_one_of((DecisionRow.group_id, DecisionRow.snapshot_id), snapshot_of.items()),
            DecisionRow.snapshot_at.between(min(times), max(times)),  # limits the days to read
        )
    ).all()
    versions = [(row.group_id, row.version) for row in rows if row.version is not None]
    plan_of = {group: plan for (group, _), plan in plans_at(connection, versions).items()}
    return {
        row.group_id: StoredDecision(
            group=row.group_id,
            snapshot_id=snapshot_of[row.group_id],
            outcome=row.outcome,
            reason=row.reason,
            plan=plan_of.get(row.group_id),
            created=created,
        )
        for row in rows
    }


def set_aside(decision: Decision, why: str) -> StoredDecision:
    """Return a failed decision, in place of a decision that could not be stored."""
    return StoredDecision(
        group=decision.group,
        snapshot_id=decision.snapshot_id,
        outcome="failed",
        reason=f"group {shortened(decision.group)} is skipped: {why}",
        plan=None,
        created=False,
    )


def plain_number(value: Any) -> Any:
    """Convert a Decimal from a numeric column to int or float; return other values unchanged."""
    if not isinstance(value, Decimal):
        return value
    return int(value) if value == value.to_integral_value() else float(value)


def metric_columns(metrics: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return metrics as the columns of `MeasuredBalance`; all None if nothing was measured."""
    if metrics is None:
        return dict.fromkeys((*FIGURES, "imbalance"))
    return {name: metrics.get(name) for name in FIGURES} | {"imbalance": imbalance(metrics)}


def _as_text(rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Return rows as a table for COPY; all values are text, since integers may exceed 64 bits."""
    return pa.table(
        {
            name: pa.array(
                [None if row[name] is None else str(row[name]) for row in rows], pa.string()
            )
            for name in rows[0]
        }
    )
