"""`partition_lag`: the lag and the status of each partition."""

import dagster as dg
import pyarrow as pa

from assets.group_offsets import group_offsets
from assets.resources import SettingsResource, SparkResource, StoreResource
from assets.scope import scope_of
from assets.shown.cohorts import materialized
from assets.shown.lag import describe, worst_first
from assets.steps import snapshots_of, step
from fairlead.common.words import plural
from fairlead.domain.policy import policy_for


@step(
    deps=[group_offsets],
    group_name="observe",
    kinds={"spark", "postgres"},
    changed="history",
    description="Computed in Spark for each partition: lag (by the rule of KAFKA-5337), lost "
    "records, owner, arrival and consumption rates, time lag and status. Postgres keeps the "
    "history (fairlead.lag_history).",
)
def partition_lag(
    context: dg.AssetExecutionContext,
    settings: SettingsResource,
    spark: SparkResource,
    store: StoreResource,
) -> dg.MaterializeResult[None]:
    """Compute the lag of each partition in the snapshot, and store the lag in Postgres."""
    from fairlead.spark.lag import write_lag  # noqa: PLC0415 - only for runs with Spark

    warehouse = spark.warehouse()
    current = settings.get()
    measured = []
    for recent in snapshots_of(context, scope_of(context), warehouse, "groups"):
        latest = {
            group
            for group in warehouse.load("groups", recent.snapshot_id)["group"].to_pylist()
            if policy_for(group, current.policies).auto_offset_reset == "latest"
        }
        context.log.info("Measuring the lag of %s", plural(len(recent.groups), "group"))
        session = spark.session(context.log.info)
        write_lag(session, warehouse, recent.snapshot_id, latest)
        measured.append(warehouse.load("lag", recent.snapshot_id))
    lag = pa.concat_tables(measured)
    with store.open() as plans:
        stored = plans.record_lag(lag)
        context.log.info("Stored %s rows of lag history", f"{stored:,}")
    return materialized(context, worst_first(lag), current, lambda groups: describe(lag, groups))
