"""What all steps of the pipeline share: their partitions, and which snapshots they work on.

Belongs here: the arguments every asset has in common. Does not: any step.
"""

from collections.abc import Callable, Sequence
from typing import Any

import dagster as dg

from assets.about import OWNERS, Changed, changes, written_at
from assets.partitions import cohort
from assets.retries import RETRIES, failing_at_once
from fairlead.common.words import listed
from fairlead.spark.warehouse import Recent, Warehouse


def step(
    *,
    group_name: str,
    kinds: set[str],
    changed: Changed,
    description: str,
    deps: Sequence[dg.AssetsDefinition] = (),
) -> Callable[[Callable[..., Any]], dg.AssetsDefinition]:
    """Make a function a step of the pipeline: partitioned by cohort, several of them in one run.

    `changed` says what a run of it changes. What fails is tried again, unless that cannot help.
    """

    def asset(function: Callable[..., Any]) -> dg.AssetsDefinition:
        return dg.asset(
            partitions_def=cohort,
            backfill_policy=dg.BackfillPolicy.single_run(),
            retry_policy=RETRIES,
            owners=OWNERS,
            group_name=group_name,
            kinds=kinds,
            tags=changes(changed),
            metadata=written_at(function),
            description=description,
            deps=deps,
        )(failing_at_once()(function))

    return asset


def snapshots_of(cohorts: Sequence[str], warehouse: Warehouse, table: str) -> list[Recent]:
    """Return the newest snapshots of the cohorts that a run covers.

    Raises
    ------
    Failure
        None of the cohorts has one: the step before has to run first.
    """
    found = warehouse.newest(cohorts, table)
    if not found:
        raise dg.Failure(
            f"No snapshot of {listed(sorted(cohorts))} has the table {table} yet: "
            "materialize the asset before this one first.",
            allow_retries=False,
        )
    return found
