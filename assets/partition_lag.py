"""`partition_lag`: how far behind each partition is, and whether it is healthy."""

import dagster as dg
import pyarrow as pa
import pyarrow.compute as pc

from assets.group_offsets import group_offsets
from assets.presentation import ROWS, listed, table
from assets.resources import SettingsResource, SparkResource, StoreResource
from assets.steps import snapshots_of, step
from fairlead.policy import policy_for
from fairlead.spark.lag import partition_lag as measure_lag


@step(
    deps=[group_offsets],
    group_name="observe",
    kinds={"spark", "postgres"},
    changed="history",
    description="Lag of each partition by the rule of KAFKA-5337, its owner, arrival and "
    "consumption rates, time lag and status, computed in Spark; history in Postgres "
    "(fairlead.lag_history).",
)
def partition_lag(
    context: dg.AssetExecutionContext,
    settings: SettingsResource,
    spark: SparkResource,
    store: StoreResource,
) -> dg.MaterializeResult[None]:
    """Measure the newest snapshots of the run's cohorts."""
    warehouse, session = spark.warehouse(), spark.session()
    policies = settings.get().policies
    measured = []
    for recent in snapshots_of(context.partition_keys, warehouse, "groups"):
        resets = {
            group: policy_for(group, policies).auto_offset_reset
            for group in warehouse.load("groups", recent.snapshot_id)["group"].to_pylist()
        }
        warehouse.write(
            "lag",
            recent.snapshot_id,
            measure_lag(
                warehouse.read(session, "offsets", recent.snapshot_id),
                resets,
                warehouse.earlier(session, recent.snapshot_id, recent.snapshot_at),
                warehouse.read(session, "members", recent.snapshot_id),
            ),
        )
        measured.append(warehouse.load("lag", recent.snapshot_id))
    lag = pa.concat_tables(measured)
    with store.open() as plans:
        stored = plans.record_lag(lag)
    return dg.MaterializeResult(
        metadata={"rows stored": stored, **_summary(lag)},
    )


def _summary(lag: pa.Table) -> dict[str, dg.MetadataValue | int | str]:
    by_status = lag.group_by("status").aggregate([([], "count_all")]).to_pylist()
    first = pc.select_k_unstable(lag, ROWS, [("lag", "descending"), ("topic", "ascending")])
    total = pc.sum(lag["lag"].cast(pa.decimal128(38))).as_py() or 0  # more than int64 has room for
    return {
        "total lag (records)": f"{total:,}",
        "partitions": lag.num_rows,
        "partitions with lag": pc.sum(pc.greater(lag["lag"], 0)).as_py() or 0,
        "status": listed(f"{row['count_all']:,} {row['status']}" for row in by_status),
        "heaviest partitions": table(
            lag.take(first).to_pylist(),
            {
                "group": "Consumer group",
                "topic": "Topic",
                "partition": "Partition",
                "lag": "Records not yet processed",
                "arrival_rate": "Records a second produced; empty: not known yet",
                "consumption_rate": "Records a second committed; empty: not known yet",
                "time_lag_s": "Seconds behind; empty: not known yet",
                "status": "Health, as Burrow judges it",
            },
        ),
    }
