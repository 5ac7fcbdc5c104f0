"""`PlanStore`: decisions, plans and their life, balance and lag, in transactions.

Belongs here: what is written together, and what is read back. Does not: which plan is chosen or
approved (`fairlead.plans`), the rules every writer is bound by (`migrations/sql/0001_life.sql`),
nor sending (`fairlead.kafka`).

Every method is one transaction and idempotent where a crashed run would call it again. Errors are
those of `fairlead.store.engine.transaction`.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import uuid4

import pyarrow as pa
from sqlalchemy import Connection, Engine, func, select, text
from sqlalchemy.dialects.postgresql import insert

from fairlead.errors import PlanStateError
from fairlead.plans.document import content_hash
from fairlead.store.bulk import copy_rows, with_constants
from fairlead.store.engine import transaction
from fairlead.store.models import (
    METRICS,
    Balance,
    CandidatePlan,
    ConsumerGroup,
    Decision,
    LagSnapshot,
    PartitionLag,
    Plan,
    PlanAdoption,
    PlanMove,
)
from fairlead.store.queries import close_open_plans, find_plans, lock_group, record_event
from fairlead.store.records import NoPlan, PlanDraft, StoredDecision, StoredPlan

_MOVE_COLUMNS = ("topic", "partition", "previous_member", "member", "weight", "reason")


class PlanStore:
    """The planner's way into the schema `fairlead`.

    Parameters
    ----------
    engine
        From `create_store_engine`. The store owns no connection between calls.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def record_lag(self, lag: pa.Table) -> int:
        """Store the lag of snapshots, once per snapshot and group.

        Parameters
        ----------
        lag
            One row a partition: snapshot_id, snapshot_at, group, topic, partition, begin_offset,
            end_offset, committed_offset, lag, arrival_rate, consumption_rate, time_lag_s, status.

        Returns
        -------
        Rows stored; rows of snapshots stored before are left out.
        """
        lag = lag.rename_columns(
            ["group_id" if name == "group" else name for name in lag.column_names]
        )
        snapshots = lag.group_by(["group_id", "snapshot_id", "snapshot_at"]).aggregate([])
        if not snapshots.num_rows:
            return 0
        # In one order for all: two runs that store the same groups must not lock them crosswise.
        seen = sorted(snapshots.to_pylist(), key=lambda row: (row["group_id"], row["snapshot_at"]))
        with transaction(self._engine) as connection:
            _register_groups(connection, (row["group_id"] for row in seen))
            new = connection.execute(
                insert(LagSnapshot)
                .on_conflict_do_nothing(index_elements=["group_id", "snapshot_id"])
                .returning(LagSnapshot.group_id, LagSnapshot.snapshot_id),
                seen,
            ).all()
            keys = pa.table(
                {
                    "group_id": pa.array([row.group_id for row in new], pa.string()),
                    "snapshot_id": pa.array([row.snapshot_id for row in new], pa.string()),
                }
            )
            rows = lag.join(keys, keys=["group_id", "snapshot_id"], join_type="inner")
            columns = [column.name for column in PartitionLag.__table__.columns]
            copy_rows(connection, PartitionLag.__table__, rows.select(columns))
        return int(rows.num_rows)

    def record_decision(self, decision: PlanDraft | NoPlan) -> StoredDecision:
        """Store what a look at a group came to; a draft becomes the group's next version.

        The decision, the plan with its moves, every candidate and both balances are one
        transaction, under the group's lock. A proposed plan that a new one replaces expires; an
        approved one that was not published yet becomes stale.

        Returns
        -------
        StoredDecision
            Where the snapshot had been decided on already, what was stored then: a run that is
            repeated proposes nothing twice.
        """
        with transaction(self._engine) as connection:
            _register_groups(connection, [decision.group])
            lock_group(connection, decision.group)
            stored = _stored_decision(connection, decision, created=False)
            if stored is not None:
                return stored
            version = None
            if isinstance(decision, PlanDraft):
                version = _propose(connection, decision)
            _insert_decision(connection, decision, version)
            stored = _stored_decision(connection, decision, created=True)
        assert stored is not None  # noqa: S101 - inserted above, in the same transaction
        return stored

    def approve(
        self, group: str, version: int, *, sha256: str, reason: str, actor: str | None = None
    ) -> StoredPlan:
        """Approve the document with this hash.

        Parameters
        ----------
        sha256
            Of the bytes that the approver has seen.
        actor
            Who approves; None: the database's session user.

        Raises
        ------
        PlanStateError
            There is no such version, or it is not proposed.
        TamperedPlanError
            The version's document has another hash.
        """
        return self._enter("approved", group, version, actor=actor, reason=reason, sha256=sha256)

    def reject(
        self, group: str, version: int, *, reason: str, actor: str | None = None
    ) -> StoredPlan:
        """Reject a proposed plan; raises PlanStateError where it is not proposed."""
        return self._enter("rejected", group, version, actor=actor, reason=reason)

    def _enter(
        self, state: str, group: str, version: int, *, actor: str | None, reason: str, **named: str
    ) -> StoredPlan:
        with transaction(self._engine) as connection:
            record_event(connection, group, version, state, actor=actor, reason=reason, **named)
            return find_plans(connection, Plan.group_id == group, Plan.version == version)[0]

    def expire_due(self, now: datetime) -> list[tuple[str, int]]:
        """End the plans that expired before anybody published them.

        Returns
        -------
        (group, version) of each: proposed ones are expired now, approved ones stale.
        """
        due = (Plan.state.in_(("proposed", "approved")), Plan.expires_at <= now)
        with transaction(self._engine) as connection:
            groups = connection.scalars(select(Plan.group_id).where(*due).distinct()).all()
        ended = []
        for group in sorted(groups):
            with transaction(self._engine) as connection:
                lock_group(connection, group)
                ended += [
                    (group, version)
                    for version in close_open_plans(
                        connection, group, f"it expired before {now.isoformat()}", *due
                    )
                ]
        return ended

    def get(self, group: str, version: int) -> StoredPlan:
        """Return a version; raises PlanStateError where there is none."""
        with transaction(self._engine) as connection:
            plans = find_plans(connection, Plan.group_id == group, Plan.version == version)
        if not plans:
            raise PlanStateError(f"group {group} has no version {version}")
        return plans[0]

    def published(self, group: str) -> StoredPlan | None:
        """Return the plan that the group is to follow now."""
        with transaction(self._engine) as connection:
            plans = find_plans(connection, Plan.group_id == group, Plan.state == "published")
        return plans[0] if plans else None

    def approved_unpublished(self, groups: Iterable[str] | None = None) -> list[StoredPlan]:
        """Return the plans that wait for publication: of these groups, or of all."""
        wanted = [] if groups is None else [Plan.group_id.in_(list(groups))]
        with transaction(self._engine) as connection:
            return find_plans(connection, Plan.state == "approved", *wanted)

    def history(self, group: str) -> list[dict[str, Any]]:
        """Return the view `plan_history` of a group, a dict a version, oldest first."""
        query = text("SELECT * FROM fairlead.plan_history WHERE group_id = :group ORDER BY version")
        with transaction(self._engine) as connection:
            rows = connection.execute(query, {"group": group}).mappings().all()
        return [dict(row) for row in rows]

    @contextmanager
    def publication(self, group: str) -> Iterator["Publication"]:
        """Hold a group's lock while its approved plan is sent.

        Publishers of one group take turns, and nobody proposes or approves meanwhile. What the
        `Publication` records is committed when the block ends, and is lost where it raises: the
        plan is then still approved, and the next publisher sends the same bytes again.
        """
        with transaction(self._engine) as connection:
            lock_group(connection, group)
            approved = find_plans(connection, Plan.group_id == group, Plan.state == "approved")
            yield Publication(connection, group, approved[0] if approved else None)

    def record_adoption(
        self,
        group: str,
        version: int,
        *,
        observed_at: datetime,
        snapshot_id: str,
        planned: int,
        as_planned: int,
        achieved: Mapping[str, Any],
    ) -> None:
        """Store how much of a published plan the consumers follow; once per `observed_at`.

        Parameters
        ----------
        observed_at
            When the live assignment was read.
        snapshot_id
            The snapshot whose lag `achieved` was weighed with.
        planned, as_planned
            Partitions that the plan gives an owner, and those of them that this owner has.
        achieved
            Metrics of the live assignment.
        """
        key = {"group_id": group, "version": version}
        with transaction(self._engine) as connection:
            connection.execute(
                insert(PlanAdoption).on_conflict_do_nothing(),
                key | {"observed_at": observed_at, "planned": planned, "as_planned": as_planned},
            )
            connection.execute(
                insert(Balance).on_conflict_do_nothing(),
                key
                | {"kind": "achieved", "measured_at": observed_at, "snapshot_id": snapshot_id}
                | _metrics(achieved),
            )


@dataclass(frozen=True)
class Publication:
    """A group's turn to be published, from `PlanStore.publication`.

    Parameters
    ----------
    plan
        The approved plan that waits; None: there is none. Not verified yet.
    """

    _connection: Connection
    group: str
    plan: StoredPlan | None

    def mark_published(
        self, *, topic: str, partition: int, offset: int, actor: str | None = None
    ) -> None:
        """Record where the plan's bytes are; the plan published so far is superseded."""
        plan = self._waiting()
        older = find_plans(self._connection, Plan.group_id == self.group, Plan.state == "published")
        for previous in older:
            record_event(
                self._connection,
                self.group,
                previous.version,
                "superseded",
                actor=actor,
                reason=f"version {plan.version} was published",
            )
        record_event(
            self._connection,
            self.group,
            plan.version,
            "published",
            actor=actor,
            reason=f"sent to {topic}-{partition} at offset {offset}",
            topic=topic,
            partition=partition,
            record_offset=offset,
        )

    def mark_stale(self, *, reason: str, actor: str | None = None) -> None:
        """Record that the plan no longer fits the group, and why."""
        plan = self._waiting()
        record_event(
            self._connection, self.group, plan.version, "stale", actor=actor, reason=reason
        )

    def _waiting(self) -> StoredPlan:
        if self.plan is None:
            raise PlanStateError(f"group {self.group} has no approved plan to publish")
        return self.plan


def _register_groups(connection: Connection, groups: Iterable[str]) -> None:
    rows = [{"group_id": group} for group in dict.fromkeys(groups)]
    connection.execute(insert(ConsumerGroup).on_conflict_do_nothing(), rows)


def _propose(connection: Connection, draft: PlanDraft) -> int:
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
        },
    )
    moves = draft.moves.select([name for name in _MOVE_COLUMNS if name in draft.moves.column_names])
    copy_rows(
        connection,
        PlanMove.__table__,
        with_constants(moves, {"group_id": draft.group, "version": version}),
    )
    return int(version)


def _insert_decision(connection: Connection, decision: NoPlan, version: int | None) -> None:
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
                | _metrics(one.metrics)
                for one in decision.candidates
            ],
        )
    key["measured_at"] = decision.snapshot_at
    balances = []
    if decision.observed is not None:
        balances.append(key | {"kind": "observed", "version": None} | _metrics(decision.observed))
    if isinstance(decision, PlanDraft):
        predicted = _metrics(decision.predicted)
        balances.append(key | {"kind": "predicted", "version": version} | predicted)
    if balances:
        connection.execute(insert(Balance), balances)


def _stored_decision(
    connection: Connection, decision: NoPlan, *, created: bool
) -> StoredDecision | None:
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


def _metrics(metrics: Mapping[str, Any] | None) -> dict[str, Any]:
    return {name: None if metrics is None else metrics[name] for name in METRICS}
