"""`group_offsets`: where each group stands, and who is in it, as one snapshot."""

from itertools import islice

import dagster as dg

from assets.presentation import ROWS
from assets.resources import KafkaResource, SettingsResource, SparkResource
from assets.shown.cohorts import materialized
from assets.shown.offsets import describe
from assets.steps import step
from fairlead.common.words import listed
from fairlead.domain.cohorts import groups_in
from fairlead.workflows.looking import keep


@step(
    group_name="observe",
    kinds={"kafka", "parquet"},
    changed="nothing",
    description="Begin, committed and end offsets of each group's partitions, and its members: "
    "names, subscriptions, current partitions.",
)
def group_offsets(
    context: dg.AssetExecutionContext,
    settings: SettingsResource,
    kafka: KafkaResource,
    spark: SparkResource,
) -> dg.MaterializeResult[None]:
    """Take one snapshot of all groups of the run's cohorts and keep it in the warehouse."""
    current = settings.get()
    with kafka.gateway() as gateway:
        groups = groups_in(
            context.partition_keys, gateway.list_groups(), current.discovery, current.policies
        )
        if not groups:
            raise dg.Failure(
                f"The cluster has no consumer group in {listed(sorted(context.partition_keys))}",
                allow_retries=False,
            )
        snapshot = gateway.snapshot(sorted(groups), cohorts=groups, progress=context.log.info)
    warehouse = spark.warehouse()
    warehouse.write_snapshot(snapshot)
    keep(snapshot, spark.looks())
    warehouse.prune(snapshot.snapshot_at - current.warehouse_retention)
    failed = {row["group"]: row["error"] for row in snapshot.groups.to_pylist() if row["error"]}
    for group, error in islice(failed.items(), ROWS):
        context.log.warning("Group %s: %s", group, error)
    return materialized(
        context,
        sorted(groups, key=lambda group: (group not in failed, group)),
        current.policies,
        lambda shown, _: describe(snapshot, shown),
    )
