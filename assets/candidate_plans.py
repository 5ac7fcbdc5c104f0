"""`candidate_plans`: the diagnosis of each group, and a candidate assignment per assignor."""

import dagster as dg
import pyarrow as pa
import pyarrow.compute as pc

from assets.group_offsets import group_offsets
from assets.presentation import ROWS
from assets.resources import SettingsResource, SparkResource, StoreResource
from assets.scope import scope_of
from assets.shown.candidates import COLUMNS, describe, worst_first
from assets.shown.cohorts import materialized
from assets.steps import snapshots_of, step
from fairlead.common.words import plural
from fairlead.domain.policy import policy_for


@step(
    deps=[group_offsets],
    group_name="decide",
    kinds={"spark", "parquet"},
    changed="nothing",
    description="Analyses each group from its samples, in Spark: its diagnosis, how far behind it "
    "will be, and whether a plan is worth its cost. With each assignor of the policy, computes a "
    "candidate assignment, verifies it and forecasts its effect.",
)
def candidate_plans(
    context: dg.AssetExecutionContext,
    settings: SettingsResource,
    spark: SparkResource,
    store: StoreResource,
) -> dg.MaterializeResult[None]:
    """Diagnose every group of the run, and compute candidate assignments, from a snapshot."""
    from fairlead.spark.candidates import write_candidates  # noqa: PLC0415 - only for runs with Spark

    warehouse = spark.warehouse()
    current = settings.get()
    computed = []
    for recent in snapshots_of(context, scope_of(context), warehouse, "groups"):
        groups = warehouse.load("groups", recent.snapshot_id)["group"].to_pylist()
        with store.open() as plans:
            memories = plans.memories(groups)
        policy_of = {group: policy_for(group, current.policies) for group in groups}
        candidates_at_most = sum(len(policy.assignors) for policy in policy_of.values())
        context.log.info(
            "Analysing %s, with up to %s",
            plural(len(groups), "group"),
            plural(candidates_at_most, "candidate"),
        )
        write_candidates(
            spark.session(context.log.info),
            warehouse,
            recent.snapshot_id,
            policy_of,
            memories,
        )
        computed.append(warehouse.load("candidates", recent.snapshot_id, columns=COLUMNS))
    candidates = pa.concat_tables(computed)
    failed = candidates.filter(pc.is_valid(candidates["error"]))
    for row in failed.slice(0, ROWS).to_pylist():
        context.log.warning("Group %s: %s: %s", row["group"], row["assignor"], row["error"])
    return materialized(
        context,
        worst_first(candidates),
        current,
        lambda groups: describe(candidates, groups),
    )
