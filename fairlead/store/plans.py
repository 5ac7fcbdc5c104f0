"""`PlanStore`: writes and reads decisions, plans, their steps, balance and lag, in transactions.

Belongs here: rows that are written together, and reading them. Belongs elsewhere: choosing or
approving plans (`fairlead.domain`), the rules that hold for every writer
(`migrations/sql/life.sql`), and sending (`fairlead.kafka`).

Most methods are one transaction. Methods that a run calls again after a crash are idempotent.
Methods raise the errors of `fairlead.store.engine.transaction`.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from uuid import UUID

import numpy as np
import pyarrow as pa
from sqlalchemy import (
    ColumnElement,
    Engine,
    and_,
    func,
    select,
    text,
)
from sqlalchemy.dialects.postgresql import insert

from fairlead.domain.candidate_figures import FIGURES
from fairlead.domain.group_memories import GroupMemories
from fairlead.domain.plan_requests import PlanRequest
from fairlead.domain.records import (
    Decision,
    Findings,
    MeasuredLag,
    PlanDraft,
    SeenAdoption,
    StoredDecision,
    StoredPlan,
)
from fairlead.errors import PlanStateError, UnstorableError
from fairlead.store.analysis_memory import read_memories, record_findings
from fairlead.store.decisions import (
    insert_decisions,
    plain_number,
    propose,
    set_aside,
    stored_decisions,
)
from fairlead.store.engine import store_errors, transaction
from fairlead.store.group_history import insert_samples, replace_last_samples
from fairlead.store.lag import insert_lag
from fairlead.store.models.history import (
    LagSnapshot,
    LastAdoption,
    LastSample,
    PlanAdoption,
    PlanBalance,
)
from fairlead.store.models.plan import ConsumerGroup, DecisionRow, LastRecord, Plan
from fairlead.store.outbox import Outbox
from fairlead.store.shared_statements import (
    among,
    close_open_plans,
    ensure_days,
    find_plans,
    is_one_of,
    lock_groups,
    register_groups,
)

#: Maximum number of groups whose plans are ended in one transaction.
_AT_ONCE: Final = 500
#: Because `snapshot_at` is compared with `=`, Postgres reads only the table partition of one day.
_LAG: Final = text("""
    SELECT topic, lag, status FROM fairlead_raw.partition_lag
    WHERE group_id = :group AND snapshot_at = :newest AND status IS NOT NULL
    ORDER BY topic, partition
""")
_HELD: Final = "another open transaction has locked it: the next run tries again"


class PlanStore:
    """The planner's access to the database.

    Parameters
    ----------
    engine
        From `create_store_engine`. Between calls, the store keeps no connection.
    settings
        The source of the policies (`Settings.source`), stored with each decision.
    """

    def __init__(self, engine: Engine, settings: str | None = None) -> None:
        self.engine, self._settings = engine, settings

    def outbox(self) -> Outbox:
        """Return the outbox of the plan topic."""
        return Outbox(self.engine)

    def record_lag(self, lag: pa.Table) -> int:
        """Store the lag of snapshots, once per snapshot and group.

        Parameters
        ----------
        lag
            One row per partition, with the columns of `fairlead.spark.lag.LAG`; `member` may be
            absent.

        Returns
        -------
        Number of stored rows; rows of snapshots that were stored earlier do not count.
        """
        with transaction(self.engine) as connection:
            return insert_lag(connection, lag)

    def record_decisions(self, decisions: Sequence[Decision]) -> list[StoredDecision]:
        """Store decisions, at most one per group; drafts become the groups' next versions.

        One transaction locks the groups and writes decisions, plans with their moves, candidates
        and balances. A new plan ends the group's open plan: a proposed plan becomes `expired`, an
        approved plan that is not published becomes `stale`.

        Returns
        -------
        A StoredDecision for each decision, in the same order. If a decision is already stored for
        the group and snapshot, the stored decision is returned, so a repeated run does not propose
        a plan twice. If another open transaction has locked a group, nothing is stored for the
        group, and a failed decision with the reason is returned. The same happens if Postgres does
        not accept one of the group's values.
        """
        groups = [decision.group for decision in decisions]
        if len(set(groups)) < len(groups):
            raise ValueError("record_decisions takes one decision per group")
        try:
            stored = self._record_decisions(decisions)
        except UnstorableError as error:
            if len(decisions) == 1:
                return [set_aside(decisions[0], str(error))]
            half = len(decisions) // 2
            return self.record_decisions(decisions[:half]) + self.record_decisions(decisions[half:])
        return [stored.get(wanted.group) or set_aside(wanted, _HELD) for wanted in decisions]

    def _record_decisions(self, decisions: Sequence[Decision]) -> dict[str, StoredDecision]:
        """Store decisions in one transaction; skip groups that another transaction has locked."""
        groups = [decision.group for decision in decisions]
        self._ensure_days(decision.snapshot_at for decision in decisions)
        with transaction(self.engine) as connection:
            register_groups(connection, groups)
            free = lock_groups(connection, groups)
            known = [decision for decision in decisions if decision.group in free]
            stored = stored_decisions(connection, known, created=False)
            new = [decision for decision in known if decision.group not in stored]
            if new:
                drafts = [decision for decision in new if isinstance(decision, PlanDraft)]
                insert_decisions(connection, new, propose(connection, drafts), self._settings)
                stored |= stored_decisions(connection, new, created=True)
        return stored

    def _ensure_days(self, times: Iterable[datetime]) -> None:
        """Create missing table partitions for these days, in a transaction that locks no group."""
        with transaction(self.engine) as connection:
            ensure_days(connection, {moment.astimezone(UTC).date() for moment in times})

    def approve(
        self, group: str, version: int, *, sha256: str, reason: str, actor: str | None = None
    ) -> StoredPlan:
        """Approve a version whose document has this hash.

        Parameters
        ----------
        sha256
            Hash of the document that the approver saw.
        actor
            The person for whom a service approves; None: the database's session user. Ignored if
            the session user has no right to act for others.

        Raises
        ------
        PlanStateError
            The version does not exist, is not proposed, has expired, or needs another approver; or
            the reason is blank.
        TamperedPlanError
            The version's document has another hash.
        """
        function = func.fairlead.approve_plan(group, version, reason, sha256, actor)
        return self._decide(function, group, version)

    def approve_all(
        self, plans: Sequence[StoredPlan], reasons: Sequence[str], actor: str
    ) -> dict[str, str]:
        """Approve plans independently of each other, in one transaction; see `approve`.

        Parameters
        ----------
        plans
            The plans with their approved hashes.
        reasons
            One reason per plan, in the same order.
        actor
            The person for whom a service approves.

        Returns
        -------
        A mapping from groups to the reasons why their plans could not be approved, for example
        because a person rejected them.
        """
        refused: dict[str, str] = {}
        with transaction(self.engine) as connection:
            free = lock_groups(connection, [plan.group for plan in plans])
            for plan, why in zip(plans, reasons, strict=True):
                if plan.group not in free:
                    refused[plan.group] = _HELD
                    continue
                approval = func.fairlead.approve_plan(
                    plan.group, plan.version, why, plan.sha256, actor
                )
                try:
                    with connection.begin_nested(), store_errors(self.engine.url):
                        connection.execute(select(approval))
                except PlanStateError as error:
                    refused[plan.group] = str(error)
        return refused

    def reject(
        self, group: str, version: int, *, reason: str, actor: str | None = None
    ) -> StoredPlan:
        """Reject a proposed plan; raises PlanStateError if the plan has another state."""
        function = func.fairlead.reject_plan(group, version, reason, actor)
        return self._decide(function, group, version)

    def _decide(self, function: ColumnElement[Any], group: str, version: int) -> StoredPlan:
        """Approve or reject by calling a database function; approvers cannot write to tables."""
        with transaction(self.engine) as connection:
            connection.execute(select(function))
            return find_plans(connection, Plan.group_id == group, Plan.version == version)[0]

    def expire_due(self, now: datetime) -> list[tuple[str, int]]:
        """End the plans that expired before they were published.

        Returns
        -------
        (group, version) of each ended plan: proposed plans are now `expired`, approved plans
        `stale`.
        """
        due = (Plan.state.in_(("proposed", "approved")), Plan.expires_at <= now)
        with transaction(self.engine) as connection:
            groups = connection.scalars(
                select(Plan.group_id).where(*due).distinct().order_by(Plan.group_id)
            ).all()
        why = f"it expired before {now.isoformat()}"
        ended: list[tuple[str, int]] = []
        for first in range(0, len(groups), _AT_ONCE):
            with transaction(self.engine) as connection:
                # Plans of groups that another transaction has locked are ended by the next run.
                free = lock_groups(connection, groups[first : first + _AT_ONCE])
                ended += close_open_plans(connection, dict.fromkeys(free, why), *due)
        return ended

    def get(self, group: str, version: int) -> StoredPlan:
        """Return a version; raises PlanStateError if it does not exist."""
        plans = self._find(Plan.group_id == group, Plan.version == version)
        if not plans:
            raise PlanStateError(f"group {group} has no version {version}")
        return plans[0]

    def requested(self, request_id: UUID) -> StoredPlan | None:
        """Return the version made for a person's request on a page; None if there is none."""
        return next(iter(self._find(Plan.request_id == request_id)), None)

    def published(self, group: str) -> StoredPlan | None:
        """Return the published plan of a group; None if there is none."""
        return next(iter(self.in_state("published", groups=[group])), None)

    def waiting(self, groups: Iterable[str]) -> dict[str, StoredPlan]:
        """Return the plans that wait for approval or publication, by group."""
        return {plan.group: plan for plan in self.in_state("proposed", "approved", groups=groups)}

    def in_state(self, *states: str, groups: Iterable[str] | None = None) -> list[StoredPlan]:
        """Return the plans of some or all groups that are in one of these states."""
        conditions = [] if groups is None else [among(Plan.group_id, groups)]
        return self._find(Plan.state.in_(states), *conditions)

    def _find(self, *conditions: ColumnElement[bool]) -> list[StoredPlan]:
        with transaction(self.engine) as connection:
            return find_plans(connection, *conditions)

    def known_groups(self) -> list[str]:
        """Return the names of all groups in the database, ascending."""
        with transaction(self.engine) as connection:
            return list(
                connection.scalars(select(ConsumerGroup.group_id).order_by(ConsumerGroup.group_id))
            )

    def last_decisions(self) -> dict[str, datetime]:
        """Return the time of each group's last decision that did not fail.

        Usually this is the decision on the newest snapshot. If a wrong clock has dated a snapshot
        in the future, this snapshot remains the newest for some time. So the decision on it is
        compared with the decision on the newest other snapshot, and the later decision counts.
        """
        of_group = (
            DecisionRow.group_id == ConsumerGroup.group_id,
            DecisionRow.outcome != "failed",
        )
        newest = (
            select(DecisionRow.decided_at)
            .where(*of_group, DecisionRow.snapshot_at <= func.now())
            .order_by(DecisionRow.snapshot_at.desc())
            .limit(1)
        )
        ahead = select(func.max(DecisionRow.decided_at)).where(
            *of_group, DecisionRow.snapshot_at > func.now()
        )
        last = func.greatest(newest.scalar_subquery(), ahead.scalar_subquery())
        with transaction(self.engine) as connection:
            rows = connection.execute(select(ConsumerGroup.group_id, last))
            return {group: at for group, at in rows if at is not None}

    def newest_lag(self, group: str) -> MeasuredLag | None:
        """Return a group's lag and statuses in its newest snapshot; None if there is none."""
        newest = select(func.max(LagSnapshot.snapshot_at)).where(LagSnapshot.group_id == group)
        with transaction(self.engine) as connection:
            at = connection.scalar(newest)
            rows = connection.execute(_LAG, {"group": group, "newest": at}).all()
        if not rows:
            return None
        lags: dict[str, list[float]] = {}
        for row in rows:
            lags.setdefault(row.topic, []).append(float(row.lag))
        return MeasuredLag(
            lags={topic: np.array(values) for topic, values in lags.items()},
            statuses=frozenset(row.status for row in rows),
        )

    def leases_ending_by(self, due: datetime) -> list[str]:
        """Return the groups whose published plan has a lease that ends at or before `due`."""
        same = and_(LastRecord.group_id == Plan.group_id, LastRecord.version == Plan.version)
        with transaction(self.engine) as connection:
            groups = connection.scalars(
                select(Plan.group_id)
                .join(LastRecord, same)
                .where(Plan.state == "published", LastRecord.lease_until <= due)
                .order_by(Plan.group_id)
            )
            return list(groups)

    def unobserved(self, plans: Iterable[StoredPlan]) -> set[tuple[str, int]]:
        """Return (group, version) of the plans for which no adherence was ever stored."""
        keys = {(plan.group, plan.version) for plan in plans}
        adoption = select(LastAdoption.group_id, LastAdoption.version)
        with transaction(self.engine) as connection:
            observed = connection.execute(
                adoption.where(LastAdoption.group_id.in_([group for group, _ in keys]))
            ).all()
        return keys - {(row.group_id, row.version) for row in observed}

    def predicted(self, plans: Iterable[StoredPlan]) -> dict[tuple[str, int], dict[str, Any]]:
        """Return the predicted metrics of plans, by group and version."""
        keys = [(plan.group, plan.version) for plan in plans]
        predicted = select(PlanBalance).where(
            among(PlanBalance.group_id, [group for group, _ in keys]),
            is_one_of((PlanBalance.group_id, PlanBalance.version), keys),
            PlanBalance.kind == "predicted",
        )
        with transaction(self.engine) as connection:
            rows = connection.execute(predicted).mappings().all()
        return {
            (row["group_id"], row["version"]): {name: plain_number(row[name]) for name in FIGURES}
            for row in rows
        }

    def memories(self, groups: Iterable[str]) -> GroupMemories:
        """Return what the next analysis of the groups needs from earlier analyses."""
        with transaction(self.engine) as connection:
            return read_memories(connection, list(groups))

    def record_findings(
        self,
        findings_by_group: Mapping[str, tuple[datetime, Findings]],
        requests: Mapping[str, PlanRequest],
    ) -> None:
        """Store the findings of samples: diagnoses, plan requests and samples, but not speeds.

        Leaves out groups with values that Postgres does not accept.

        Parameters
        ----------
        findings_by_group
            Maps each group to the time of its sample, and its findings.
        requests
            Plan requests of the groups that need a plan.
        """
        new_samples = {
            group: findings.kept
            for group, (_, findings) in findings_by_group.items()
            if findings.kept is not None
        }
        last_samples = {
            group: findings.seen
            for group, (_, findings) in findings_by_group.items()
            if findings.seen is not None
        }
        if new_samples:
            self._ensure_days(sample.at for sample in new_samples.values())
        try:
            with transaction(self.engine) as connection:
                register_groups(connection, findings_by_group)
                record_findings(connection, findings_by_group, requests=requests)
                insert_samples(connection, new_samples)
                replace_last_samples(connection, last_samples)
        except UnstorableError:  # Postgres rejects a value of some group: store the other groups
            names = list(findings_by_group)
            half = len(names) // 2
            for part in filter(None, (names[:half], names[half:])) if half else ():
                self.record_findings({name: findings_by_group[name] for name in part}, requests)

    def record_sample(self, began: datetime, interval: timedelta) -> None:
        """Store when the last sample of all groups began, and the interval until the next sample.

        If a wrong clock dates the sample in the future, the database's present time is stored.
        """
        row: dict[str, Any] = {
            "single": True,
            "sampled_at": func.least(began, func.now()),
            "interval_s": interval.total_seconds(),
        }
        statement = insert(LastSample).values(row)
        with transaction(self.engine) as connection:
            connection.execute(statement.on_conflict_do_update(index_elements=["single"], set_=row))

    def mark_stale(self, plan: StoredPlan, *, reason: str) -> bool:
        """Record that an approved plan no longer fits its group.

        Returns
        -------
        True if the plan became stale. False if the plan is no longer approved, or another
        transaction has locked the group.
        """
        with transaction(self.engine) as connection:
            free = lock_groups(connection, [plan.group])
            return bool(
                close_open_plans(
                    connection,
                    dict.fromkeys(free, reason),
                    Plan.version == plan.version,
                    Plan.state == "approved",
                )
            )

    def record_adoptions(self, seen: Sequence[SeenAdoption]) -> None:
        """Store the adherence to published plans, once per plan and `observed_at`."""
        if not seen:
            return
        names = ("version", "observed_at", "planned", "as_planned", "adherence")
        adoptions = [
            {"group_id": observed.group} | {name: getattr(observed, name) for name in names}
            for observed in seen
        ]
        self._ensure_days(observed.observed_at for observed in seen)
        with transaction(self.engine) as connection:
            connection.execute(insert(PlanAdoption).on_conflict_do_nothing(), adoptions)
