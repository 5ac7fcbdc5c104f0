"""`candidate_plans`: what every assignor of a group's policy would do with the same snapshot."""

from typing import Any

import dagster as dg
import pyarrow as pa
import pyarrow.compute as pc

from assets.partition_lag import partition_lag
from assets.presentation import ROWS
from assets.resources import SettingsResource, SparkResource
from assets.shown.candidates import COLUMNS, describe, worst_first
from assets.shown.cohorts import materialized
from assets.steps import snapshots_of, step
from fairlead.policy import policy_for
from fairlead.spark.candidates import candidate_plans as plan_candidates
from fairlead.spark.recent import Recent
from fairlead.spark.warehouse import Warehouse


@step(
    deps=[partition_lag],
    group_name="decide",
    kinds={"spark", "parquet"},
    changed="nothing",
    description="Runs every assignor of each group's policy on the same lag, one group a Spark "
    "task, with metrics, verification and a reason for each move.",
)
def candidate_plans(
    context: dg.AssetExecutionContext, settings: SettingsResource, spark: SparkResource
) -> dg.MaterializeResult[None]:
    """Compute candidates for the newest snapshots of the run's cohorts."""
    warehouse = spark.warehouse()
    policies = settings.get().policies
    computed = []
    for recent in snapshots_of(context.partition_keys, warehouse, "lag"):
        groups = warehouse.load("groups", recent.snapshot_id)["group"].to_pylist()
        _compute(spark, warehouse, recent, {group: policy_for(group, policies) for group in groups})
        computed.append(warehouse.load("candidates", recent.snapshot_id).select(COLUMNS))
    candidates = pa.concat_tables(computed)
    failed = candidates.filter(pc.is_valid(candidates["error"]))
    for row in failed.slice(0, ROWS).to_pylist():
        context.log.warning("Group %s: %s: %s", row["group"], row["assignor"], row["error"])
    return materialized(
        context,
        worst_first(candidates),
        policies,
        lambda groups, draw: describe(candidates, groups, policies, draw),
    )


def _compute(
    spark: SparkResource, warehouse: Warehouse, recent: Recent, policies: dict[str, Any]
) -> None:
    """Plan a whole snapshot and keep the table."""
    session, snapshot_id = spark.session(), recent.snapshot_id
    candidates = plan_candidates(
        warehouse.read(session, "lag", snapshot_id),
        warehouse.read(session, "members", snapshot_id),
        warehouse.read(session, "groups", snapshot_id),
        policies,
    )
    warehouse.write("candidates", snapshot_id, candidates)
