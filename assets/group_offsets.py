"""`group_offsets`: where each group stands, and who is in it, as one snapshot."""

from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Final

import dagster as dg

from assets.presentation import ROWS
from assets.resources import KafkaResource, SettingsResource, SparkResource, StoreResource
from assets.scope import LOOK_TAG, Scope, ScopeConfig, scope_of
from assets.shown.cohorts import materialized
from assets.shown.offsets import describe
from assets.steps import hand_on, step
from fairlead.archive import LookArchive
from fairlead.common.words import listed, plural
from fairlead.domain.cohorts import groups_in
from fairlead.domain.samples import GroupSnapshot
from fairlead.settings import Settings
from fairlead.spark.warehouse import Warehouse
from fairlead.store.clock import check_clock
from fairlead.workflows.look_interval import interval

#: The look that called for a run is its snapshot for so many looks' intervals.
IN_LOOKS: Final = 2


@step(
    group_name="observe",
    kinds={"kafka", "parquet"},
    changed="nothing",
    description="Begin, committed and end offsets of each group's partitions, and its members: "
    "names, subscriptions, current partitions.",
)
def group_offsets(  # noqa: PLR0917 - Dagster's resources
    context: dg.AssetExecutionContext,
    config: ScopeConfig,  # noqa: ARG001 - every step reads it from the run
    settings: SettingsResource,
    kafka: KafkaResource,
    spark: SparkResource,
    store: StoreResource,
) -> dg.MaterializeResult[None]:
    """Go on from the look that called for the run, or take one snapshot of all its groups."""
    current, scope = settings.get(), scope_of(context)
    warehouse, archive = spark.warehouse(), spark.looks()
    seen = _called_by(context, scope, current, warehouse, archive)
    if seen is None:
        with store.connect() as engine:
            check_clock(engine)
        seen = _taken(context, scope, current, kafka, spark)
    hand_on(context, seen.snapshot_id)
    rows = seen.samples.select(["group", "error"]).to_pylist()
    failed = {row["group"]: row["error"] for row in rows if row["error"]}
    for group, error in islice(failed.items(), ROWS):
        context.log.warning("Group %s: %s", group, error)
    return materialized(
        context,
        sorted(seen.samples["group"].to_pylist(), key=lambda group: (group not in failed, group)),
        current,
        lambda groups: describe(seen, groups),
    )


def _called_by(
    context: dg.AssetExecutionContext,
    scope: Scope,
    current: Settings,
    warehouse: Warehouse,
    archive: LookArchive,
) -> GroupSnapshot | None:
    """Return the look that called for the run; None: none did, or it is old or incomplete."""
    look_id, taken = context.run.tags.get(LOOK_TAG), archive.taken()
    wanted = {group for groups in scope.only.values() for group in groups}
    found = warehouse.of_groups(look_id, "candidates", scope.has) if look_id else []
    if not found or taken is None or {*found[0].groups} != wanted:
        return None
    (recent,) = found
    age = datetime.now(UTC) - recent.snapshot_at
    if not timedelta(0) <= age <= IN_LOOKS * interval(taken, current.looks):
        return None
    samples = warehouse.samples(recent)
    if samples.num_rows < len(recent.groups):  # the file was damaged
        return None
    context.log.info("Going on from look %s, which called for this run", recent.snapshot_id)
    return GroupSnapshot(recent.snapshot_id, recent.snapshot_at, None, samples)


def _taken(
    context: dg.AssetExecutionContext,
    scope: Scope,
    current: Settings,
    kafka: KafkaResource,
    spark: SparkResource,
) -> GroupSnapshot:
    """Take a snapshot, and keep it."""
    warehouse = spark.warehouse()
    with kafka.gateway() as gateway:
        listed_now = gateway.list_groups()
        found = groups_in(scope.cohorts, listed_now, current.discovery, current.policies)
        groups = {group: cohort for group, cohort in found.items() if scope.has(group, cohort)}
        if not groups:
            raise dg.Failure(
                f"The cluster has no consumer group in {listed(sorted(scope.cohorts))} that "
                "discovery covers",
                allow_retries=False,
            )
        context.log.info("Reading the offsets and members of %s", plural(len(groups), "group"))
        snapshot = gateway.snapshot(
            sorted(groups),
            before=spark.looks().newest(sorted(groups)),
            progress=context.log.info,
        )
    warehouse.write_snapshot(snapshot, groups)
    warehouse.prune(snapshot.snapshot_at - current.warehouse_retention)
    return snapshot
