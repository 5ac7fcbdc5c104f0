"""`assignment_plan`: the policy's choice becomes the group's next version, or 'no change'."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import dagster as dg
import pyarrow as pa
import pyarrow.compute as pc
from sqlalchemy import Engine

from assets.candidate_plans import candidate_plans
from assets.presentation import ROWS
from assets.resources import SettingsResource, SparkResource, StoreResource
from assets.shown.cohorts import materialized
from assets.shown.plans import Detail, worst_first
from assets.shown.plans import describe as describe_plans
from assets.steps import OF_ONE_GROUP, snapshots_of, step
from fairlead.domain.drafting import SnapshotTables, decisions, ownership
from fairlead.domain.policy import Policy, policy_for
from fairlead.domain.records import StoredPlan
from fairlead.spark.newest import Recent
from fairlead.spark.warehouse import Warehouse
from fairlead.store.plans import PlanStore
from fairlead.store.reading import read_plan
from fairlead.workflows.proposal import Look, Outcome, carry_out


@step(
    deps=[candidate_plans],
    group_name="decide",
    kinds={"postgres"},
    changed="plans",
    description="Stores what the judgement came to: the next version of each group's plan or 'no "
    "change' with the reason, with diagnosis, speeds and balance history, in one transaction; "
    "approves what the policy allows.",
)
def assignment_plan(
    context: dg.AssetExecutionContext,
    settings: SettingsResource,
    spark: SparkResource,
    store: StoreResource,
) -> dg.MaterializeResult[None]:
    """Decide on every group of the run's cohorts."""
    current = settings.get()
    policies = current.policies
    warehouse = spark.warehouse()
    outcomes: list[Outcome] = []
    read: list[pa.Table] = []
    with store.connect() as engine:
        plans = PlanStore(engine)
        for expired_group, version in plans.expire_due(datetime.now(UTC)):
            context.log.info("Group %s: version %d has expired", expired_group, version)
        for recent in snapshots_of(context.partition_keys, warehouse, "candidates"):
            tables = _load(warehouse, recent)
            outcomes += _decide(plans, tables, _statuses(warehouse, recent), policies)
            read.append(tables.members)
        ordered = worst_first(outcomes)
        reasons = {outcome.decision.group: outcome.stored.reason for outcome in outcomes}
        for group in ordered[:ROWS]:
            context.log.info("Group %s: %s", group, reasons[group])
        waiting, members = plans.waiting(ordered), pa.concat_tables(read)

        def describe(groups: Sequence[str], draw: bool) -> dict[str, Any]:  # noqa: FBT001 - `Describe`
            detail = _detail(context, engine, outcomes, waiting, members=members, groups=groups)
            return describe_plans(outcomes, groups, detail, current.web, draw)

        return materialized(context, ordered, policies, describe)


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
    now = datetime.now(UTC)
    looks = [
        Look(
            decision,
            policy_for(decision.group, policies),
            statuses.get(decision.group, frozenset()),
        )
        for decision in decisions(tables, policies, now)
    ]
    return carry_out(plans, looks, now)


def _detail(
    context: dg.AssetExecutionContext,
    engine: Engine,
    outcomes: Sequence[Outcome],
    waiting: Mapping[str, StoredPlan],
    *,
    members: pa.Table,
    groups: Sequence[str],
) -> Detail | None:
    """Return the plan to show in detail: the first that waits for a person, else the first made."""
    by_group = {outcome.decision.group: outcome for outcome in outcomes}
    made = {group: by_group[group].stored.plan for group in groups}
    plans = [waiting.get(group) or made[group] for group in groups]
    found = [plan for plan in plans if plan is not None]
    if not found:
        return None
    plan = next((plan for plan in found if plan.state == "proposed"), found[0])
    group, outcome = plan.group, by_group[plan.group]
    try:
        document = plan.verify()
    except OF_ONE_GROUP as error:  # a check says so too; the next plan takes its place
        context.log.warning("Group %s: %s", group, error)
        return None
    predicted = PlanStore(engine).predicted([plan])
    return Detail(
        plan=plan,
        document=document,
        history=read_plan(engine, group, plan.version),
        predicted=predicted[group, plan.version],
        before=ownership(members.filter(pc.equal(members["group"], group))).get(group, {}),
        policy=outcome.approval.reason,
    )
