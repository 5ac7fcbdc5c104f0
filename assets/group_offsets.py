"""`group_offsets`: offsets and members of each group, as one snapshot."""

from itertools import islice

import dagster as dg

from assets.presentation import ROWS
from assets.resources import KafkaResource, SettingsResource, SparkResource, StoreResource
from assets.scope import ScopeConfig, scope_of
from assets.shown.cohorts import materialized
from assets.shown.offsets import describe
from assets.steps import hand_on, step
from fairlead.common.words import listed, plural
from fairlead.domain.cohorts import groups_in
from fairlead.store.clock import check_clock


@step(
    group_name="observe",
    kinds={"kafka", "parquet"},
    changed="nothing",
    description="For each group: begin, committed and end offsets of its partitions, and the "
    "names, subscriptions and present partitions of its members.",
)
def group_offsets(  # noqa: PLR0917 - Dagster's resources
    context: dg.AssetExecutionContext,
    config: ScopeConfig,  # noqa: ARG001 - every step reads it from the run
    settings: SettingsResource,
    kafka: KafkaResource,
    spark: SparkResource,
    store: StoreResource,
) -> dg.MaterializeResult[None]:
    """Take one snapshot of all groups of the run."""
    current, scope = settings.get(), scope_of(context)
    with store.connect() as engine:
        check_clock(engine)
    with kafka.gateway() as gateway:
        listed_now = gateway.list_groups()
        cohort_of_group = groups_in(scope.cohorts, listed_now, current.discovery, current.policies)
        groups = {
            group: cohort for group, cohort in cohort_of_group.items() if scope.has(group, cohort)
        }
        if not groups:
            raise dg.Failure(
                f"The cluster has no consumer group in {listed(sorted(scope.cohorts))} that "
                "discovery covers",
                allow_retries=False,
            )
        context.log.info("Reading the offsets and members of %s", plural(len(groups), "group"))
        before = spark.archive().newest(sorted(groups))
        snapshot = gateway.snapshot(sorted(groups), before=before, progress=context.log.info)
    warehouse = spark.warehouse()
    warehouse.write_snapshot(snapshot, groups)
    warehouse.prune(snapshot.snapshot_at - current.warehouse_retention)
    hand_on(context, snapshot.snapshot_id)
    rows = snapshot.samples.select(["group", "error"]).to_pylist()
    failed = {row["group"]: row["error"] for row in rows if row["error"]}
    for group, error in islice(failed.items(), ROWS):
        context.log.warning("Group %s: %s", group, error)
    return materialized(
        context,
        sorted(
            snapshot.samples["group"].to_pylist(), key=lambda group: (group not in failed, group)
        ),
        current,
        lambda groups: describe(snapshot, groups),
    )
