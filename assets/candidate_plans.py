"""`candidate_plans`: what every assignor of a group's policy would do with the same snapshot."""

from typing import Any

import dagster as dg
import pyarrow as pa
import pyarrow.compute as pc

from assets.partition_lag import partition_lag
from assets.presentation import ROWS, listed, table
from assets.resources import SettingsResource, SparkResource
from assets.steps import snapshots_of, step
from fairlead.policy import policy_for
from fairlead.spark.candidates import candidate_plans as plan_candidates
from fairlead.spark.planning import SUMMARY
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
        computed.append(warehouse.load("candidates", recent.snapshot_id).select(SUMMARY.names))
    candidates = pa.concat_tables(computed)
    failed = candidates.filter(pc.is_valid(candidates["error"]))
    for row in failed.slice(0, ROWS).to_pylist():
        context.log.warning("Group %s: %s: %s", row["group"], row["assignor"], row["error"])
    return dg.MaterializeResult(metadata=_summary(candidates))


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


def _summary(candidates: pa.Table) -> dict[str, Any]:
    rows = sorted(candidates.to_pylist(), key=_heaviest_group_first(candidates))
    return {
        "groups": len({row["group"] for row in rows}),
        "assignors": listed({row["assignor"] for row in rows} - {"observed"}),
        "failed": sum(row["error"] is not None for row in rows),
        "candidates": table(
            rows,
            {
                "group": "Consumer group, the one with the heaviest member first",
                "assignor": "observed: the assignment the group has now",
                "lag_max": "Records of the heaviest member",
                "lag_mean": "Records a member on average",
                "lag_lower_bound": "No assignment has a lighter heaviest member",
                "gap": "How far the heaviest member lies above that bound, as a share of it",
                "count_min": "Fewest partitions of a member",
                "count_max": "Most partitions of a member",
                "moved": "Partitions taken from a present owner",
                "placed": "Partitions without an owner that get one",
                "outcome": "What the assignor says of it",
                "error": "Why there is none",
            },
        ),
    }


def _heaviest_group_first(candidates: pa.Table) -> Any:
    """Order rows by their group's observed heaviest member, then candidates from light to heavy."""
    observed = {
        row["group"]: float(row["lag_max"] or 0)
        for row in candidates.to_pylist()
        if row["assignor"] == "observed"
    }
    return lambda row: (
        -observed.get(row["group"], 0.0),
        row["group"],
        row["assignor"] != "observed",
        float(row["lag_max"] or 0),
    )
