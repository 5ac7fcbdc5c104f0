"""`assignment_plan`: decide for each group between a new plan version and 'no change'."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import dagster as dg

from assets.candidate_plans import candidate_plans
from assets.presentation import ROWS
from assets.resources import SettingsResource, SparkResource, StoreResource
from assets.scope import scope_of
from assets.shown.cohorts import materialized
from assets.shown.plans import describe as describe_plans
from assets.shown.plans import detail_of, worst_first
from assets.steps import snapshots_of, step
from fairlead.common.words import plural
from fairlead.store.plans import PlanStore
from fairlead.workflows.proposal import Outcome
from fairlead.workflows.snapshot_decisions import decide_on


@step(
    deps=[candidate_plans],
    group_name="decide",
    kinds={"postgres"},
    changed="plans",
    description="Stores the decision on each group: the next version of its plan, or 'no change', "
    "with the reason. Stores diagnosis, speeds and balance history in the same transaction. "
    "Approves plans if the policy allows it.",
)
def assignment_plan(
    context: dg.AssetExecutionContext,
    settings: SettingsResource,
    spark: SparkResource,
    store: StoreResource,
) -> dg.MaterializeResult[None]:
    """Decide for every group of the run whether its plan changes, and store the decisions."""
    current = settings.get()
    policies = current.policies
    warehouse = spark.warehouse()
    outcomes: list[Outcome] = []
    with store.connect() as engine:
        plans = PlanStore(engine, current.source)
        for expired_group, version in plans.expire_due(datetime.now(UTC)):
            context.log.info("Group %s: version %d has expired", expired_group, version)
        for recent in snapshots_of(context, scope_of(context), warehouse, "candidates"):
            context.log.info("Deciding on %s", plural(len(recent.groups), "group"))
            outcomes += decide_on(plans, warehouse, recent, policies, datetime.now(UTC))
        ordered = worst_first(outcomes)
        reasons = {outcome.decision.group: outcome.stored.reason for outcome in outcomes}
        for group in ordered[:ROWS]:
            context.log.info("Group %s: %s", group, reasons[group])
        waiting = plans.waiting(ordered)

        def describe(groups: Sequence[str]) -> dict[str, Any]:
            warn = context.log.warning
            detail = detail_of(engine, outcomes, waiting, groups=groups, warn=warn)
            return describe_plans(outcomes, groups, detail, current.web)

        return materialized(context, ordered, current, describe)
