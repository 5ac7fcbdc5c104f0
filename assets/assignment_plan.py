"""`assignment_plan`: the policy's choice becomes the group's next version, or 'no change'."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import dagster as dg
import pyarrow as pa
import pyarrow.compute as pc

from assets.candidate_plans import candidate_plans
from assets.presentation import ROWS, launchpad, percent, shown, table
from assets.resources import KafkaResource, SettingsResource, SparkResource, StoreResource
from assets.steps import OF_ONE_GROUP, snapshots_of, step
from fairlead.plans.as_problem import Ownership, planned
from fairlead.plans.choice import improvement
from fairlead.plans.consumers import changes
from fairlead.plans.drafting import SnapshotTables, decisions, ownership
from fairlead.plans.proposal import Look, Outcome, carry_out
from fairlead.plans.renewal import renew
from fairlead.policy import Policy, policy_for
from fairlead.spark.recent import Recent
from fairlead.spark.warehouse import Warehouse
from fairlead.store.plans import PlanStore
from fairlead.store.records import PlanDraft, StoredDecision, StoredPlan


@step(
    deps=[candidate_plans],
    group_name="decide",
    kinds={"postgres"},
    changed="plans",
    description="Chooses between the candidates by policy, stores the next version of each group's "
    "plan or 'no change' with the reason, with balance history, in one transaction; approves what "
    "the policy allows.",
)
def assignment_plan(
    context: dg.AssetExecutionContext,
    settings: SettingsResource,
    kafka: KafkaResource,
    spark: SparkResource,
    store: StoreResource,
) -> dg.MaterializeResult[None]:
    """Decide on every group of the run's cohorts."""
    policies = settings.get().policies
    warehouse = spark.warehouse()
    outcomes: list[Outcome] = []
    members: list[pa.Table] = []
    with store.open() as plans:
        for expired_group, version in plans.expire_due(datetime.now(UTC)):
            context.log.info("Group %s: version %d has expired", expired_group, version)
        for recent in snapshots_of(context.partition_keys, warehouse, "candidates"):
            tables = _load(warehouse, recent)
            outcomes += _decide(plans, tables, _statuses(warehouse, recent), policies)
            members.append(tables.members)
        unchanged = [one.stored.group for one in outcomes if one.stored.outcome == "no change"]
        expiring = plans.expiring(unchanged, datetime.now(UTC))
        outcomes += _renew(context, plans, kafka, expiring, policies)
    ordered = sorted(outcomes, key=_worst_first)
    for outcome in ordered[:ROWS]:
        context.log.info("Group %s: %s", outcome.decision.group, outcome.stored.reason)
    return dg.MaterializeResult(metadata=_metadata(ordered, pa.concat_tables(members)))


def _load(warehouse: Warehouse, recent: Recent) -> SnapshotTables:
    """Load what the snapshot says of the groups that the run is about."""
    groups = pa.array(recent.groups, pa.string())

    def load(name: str) -> pa.Table:
        rows = warehouse.load(name, recent.snapshot_id)
        return rows.filter(pc.is_in(rows["group"], groups))

    return SnapshotTables(
        recent.snapshot_id,
        recent.snapshot_at,
        groups=load("groups"),
        members=load("members"),
        candidates=load("candidates"),
    )


def _statuses(warehouse: Warehouse, recent: Recent) -> dict[str, set[str]]:
    """Return the statuses that each group's partitions have."""
    lag = warehouse.load("lag", recent.snapshot_id)
    found: dict[str, set[str]] = {}
    for row in lag.group_by(["group", "status"]).aggregate([]).to_pylist():
        found.setdefault(row["group"], set()).add(row["status"])
    return found


def _decide(
    plans: PlanStore,
    tables: SnapshotTables,
    statuses: Mapping[str, set[str]],
    policies: Sequence[Policy],
) -> list[Outcome]:
    """Store a decision for each group of a snapshot."""
    changed_at = plans.last_changes(tables.groups["group"].to_pylist())
    now = datetime.now(UTC)
    looks = [
        Look(
            decision,
            policy_for(decision.group, policies),
            statuses.get(decision.group, frozenset()),
        )
        for decision in decisions(tables, policies, now, changed_at)
    ]
    return carry_out(plans, looks, now)


def _renew(
    context: dg.AssetExecutionContext,
    plans: PlanStore,
    kafka: KafkaResource,
    expiring: Sequence[StoredPlan],
    policies: Sequence[Policy],
) -> Iterator[Outcome]:
    """Propose again what is to stay as it is, before it expires."""
    if not expiring:
        return
    with kafka.gateway() as gateway:
        for plan in expiring:
            policy = policy_for(plan.group, policies)
            try:
                renewed = renew(
                    plans, plan, policy=policy, live=gateway.live_group, now=datetime.now(UTC)
                )
            except OF_ONE_GROUP as error:
                context.log.warning("Group %s: %s", plan.group, error)
                continue
            if renewed is not None:
                yield renewed


def _metadata(ordered: Sequence[Outcome], members: pa.Table) -> dict[str, Any]:
    proposed = [outcome for outcome in ordered if isinstance(outcome.decision, PlanDraft)]
    metadata: dict[str, Any] = {
        "groups": shown(len(ordered)),
        "plans": len(proposed),
        "no change": sum(outcome.stored.outcome == "no change" for outcome in ordered),
        "failed": sum(outcome.stored.outcome == "failed" for outcome in ordered),
        "by group": table(
            [_row(outcome) for outcome in ordered],
            {
                "group": "Consumer group: failures, then the one with the heaviest member, first",
                "outcome": "A plan's version, or why there is none",
                "heaviest before": "Records of the heaviest member, as observed",
                "heaviest after": "The same, predicted",
                "moved": "Partitions taken from a present owner",
                "reason": "Why",
                "approval": "What the policy says of publishing it unasked",
                "review": "Shows all of it",
            },
        ),
    }
    if proposed:
        group = proposed[0].decision.group
        owned = ownership(members.filter(pc.equal(members["group"], group)))
        metadata |= _first_plan(proposed[0], owned.get(group, {}))
    return metadata


def _first_plan(outcome: Outcome, before: Ownership) -> dict[str, Any]:
    """Show the plan of the group that needs it most in detail."""
    draft, stored = outcome.decision, outcome.stored.plan
    if not isinstance(draft, PlanDraft) or stored is None:
        return {}
    document = stored.verify()
    name = f"{draft.group}, version {stored.version}"
    group = draft.group.replace("'", "''")
    waiting: dict[str, Any] = {}
    if not outcome.approval.approved:
        approve = f"SELECT fairlead.approve_plan('{group}', {stored.version}, 'why');"
        waiting[f"{name}: to approve it in SQL"] = approve
        waiting[f"{name}: to approve it here"] = launchpad(
            "Open the launchpad",
            "approve",
            "approve_plan",
            group=draft.group,
            version=stored.version,
            sha256=stored.sha256,
        )
    moves = draft.moves.sort_by([("weight", "descending")]).slice(0, ROWS).to_pylist()
    return waiting | {
        f"{name}: sha256": stored.sha256,
        f"{name}: heaviest consumer": f"{_lag(draft.observed)} -> {_lag(draft.predicted)} records, "
        f"{percent(improvement(draft.observed or {}, draft.predicted))} less; "
        f"no assignment is below {draft.predicted['lag_lower_bound']:,}",
        f"{name}: consumers": table(
            [vars(row) for row in changes(document, before, planned(document))],
            {
                "consumer": "Member name: instance id, client id or member id",
                "partitions_before": "Partitions as observed",
                "lag_before": "Their lag in records",
                "partitions_after": "Partitions under the plan",
                "lag_after": "Their lag in records",
            },
        ),
        f"{name}: moves": table(
            moves,
            {
                "topic": "Topic",
                "partition": "Partition",
                "weight": "Lag in records",
                "previous_member": "Owner before",
                "member": "Owner under the plan",
                "reason": "Why it moves",
            },
        ),
    }


def _row(outcome: Outcome) -> dict[str, Any]:
    decision, stored = outcome.decision, outcome.stored
    predicted = decision.predicted if isinstance(decision, PlanDraft) else None
    return {
        "group": decision.group,
        "outcome": f"version {stored.plan.version}" if stored.plan else stored.outcome,
        "heaviest before": _lag(decision.observed),
        "heaviest after": _lag(predicted),
        "moved": predicted["moved"] if predicted else 0,
        "reason": stored.reason,
        "approval": outcome.approval.reason,
        "review": _review(stored),
    }


def _review(stored: StoredDecision) -> str:
    group = shlex.quote(stored.group)
    if stored.plan is None:
        return f"fairlead history {group}"
    return f"fairlead plans show {group} {stored.plan.version}"


def _lag(metrics: Any) -> str:
    return "" if metrics is None or metrics["lag_max"] is None else f"{metrics['lag_max']:,}"


def _worst_first(outcome: Outcome) -> tuple[bool, float]:
    observed = outcome.decision.observed
    heaviest = float(observed["lag_max"] or 0) if observed else 0.0
    return outcome.stored.outcome != "failed", -heaviest
