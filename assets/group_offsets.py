"""`group_offsets`: where each group stands, and who is in it, as one snapshot."""

import dagster as dg

from assets.presentation import listed, shown, table
from assets.resources import KafkaResource, SettingsResource, SparkResource
from assets.steps import step
from fairlead.cohorts import groups_in


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
                f"The cluster has no consumer group in {listed(context.partition_keys)}",
                allow_retries=False,
            )
        snapshot = gateway.snapshot(sorted(groups), cohorts=groups, progress=context.log.info)
    warehouse = spark.warehouse()
    warehouse.write_snapshot(snapshot)
    warehouse.prune(snapshot.snapshot_at - current.warehouse_retention)
    rows = snapshot.groups.to_pylist()
    failed = [row for row in rows if row["error"]]
    for row in failed:
        context.log.warning("Group %s: %s", row["group"], row["error"])
    members = snapshot.members.group_by("group").aggregate([([], "count_all")]).to_pylist()
    partitions = snapshot.offsets.group_by("group").aggregate([([], "count_all")]).to_pylist()
    member_counts = {row["group"]: row["count_all"] for row in members}
    partition_counts = {row["group"]: row["count_all"] for row in partitions}
    return dg.MaterializeResult(
        metadata={
            "snapshot": snapshot.snapshot_id,
            "taken at": dg.MetadataValue.timestamp(snapshot.snapshot_at),
            "spread (s)": round(snapshot.spread_s, 3),
            "groups": shown(len(rows)),
            "groups that cannot be planned": len(failed),
            "members": snapshot.members.num_rows,
            "partitions": snapshot.offsets.num_rows,
            "by group": table(
                [
                    {
                        **row,
                        "members": member_counts.get(row["group"], 0),
                        "partitions": partition_counts.get(row["group"], 0),
                    }
                    for row in sorted(rows, key=lambda row: (row["error"] is None, row["group"]))
                ],
                {
                    "group": "Consumer group",
                    "state": "As its coordinator says",
                    "members": "Members",
                    "partitions": "Partitions of the topics it reads or has committed",
                    "protocol": "The assignor in use",
                    "error": "Why it cannot be planned",
                },
            ),
        }
    )
