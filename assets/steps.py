"""Common code of the pipeline's steps: arguments of assets, and the run's snapshot.

Belongs here: code that several steps use. Belongs elsewhere: the steps.
"""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import dagster as dg

from assets.about import Changed, about
from assets.partitions import cohort
from assets.retry_policy import RETRIES, failing_at_once
from assets.scope import Scope
from fairlead.common.words import listed
from fairlead.spark.warehouse import Recent, Warehouse

#: The run's tag with the id of its snapshot.
SNAPSHOT_TAG: Final = "fairlead/snapshot"


def step(
    *,
    group_name: str,
    kinds: set[str],
    changed: Changed,
    description: str,
    deps: Sequence[dg.AssetsDefinition] = (),
) -> Callable[[Callable[..., Any]], dg.AssetsDefinition]:
    """Return a decorator that makes a function a step of the pipeline, as a Dagster asset.

    The asset has a Dagster partition for each cohort (groups that are planned together).
    `changed` names the data that a run of the step changes. If a step fails with an error that is
    not in `CANNOT_HEAL`, Dagster retries the step.
    """

    def asset(function: Callable[..., Any]) -> dg.AssetsDefinition:
        made: dg.AssetsDefinition = dg.asset(
            partitions_def=cohort,
            backfill_policy=dg.BackfillPolicy.single_run(),
            retry_policy=RETRIES,
            group_name=group_name,
            kinds=kinds,
            description=description,
            deps=deps,
            **about(changed),
        )(failing_at_once()(function))
        return made

    return asset


def hand_on(context: dg.AssetExecutionContext, snapshot_id: str) -> None:
    """Tag the run with the id of its snapshot, so that its later steps use this snapshot.

    Later steps use it even if another run takes a newer snapshot meanwhile. If a person executes
    the run again, starting at a later step, Dagster copies the tag to the new run.
    """
    context.instance.add_run_tags(context.run.run_id, {SNAPSHOT_TAG: snapshot_id})


def snapshots_of(
    context: dg.AssetExecutionContext | dg.AssetCheckExecutionContext,
    scope: Scope,
    warehouse: Warehouse,
    table: str,
) -> list[Recent]:
    """Return the run's snapshot or, if the run took none, the newest snapshots of its cohorts.

    Raises
    ------
    Failure
        No snapshot has `table` yet, because the step that writes this table has not run.
    """
    run = context.instance.get_run_by_id(context.run.run_id)
    handed_on = None if run is None else run.tags.get(SNAPSHOT_TAG)
    if handed_on is not None:
        snapshots = warehouse.of_groups(handed_on, table, scope.has)
    else:
        snapshots = warehouse.newest(scope.cohorts, table, datetime.now(UTC))
    if not snapshots:
        raise dg.Failure(
            f"No snapshot of {listed(sorted(scope.cohorts))} has the table {table} yet: "
            "materialize the upstream assets first.",
            allow_retries=False,
        )
    return snapshots
