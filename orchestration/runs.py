"""Which run covers which cohorts: one by its partition, several by a range in a single run.

Belongs here: the tags Dagster reads, and whether a run is under way. Does not: how a choice is cut
into ranges (`fairlead.domain.cohorts.stretches`).
"""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta

import dagster as dg
from dagster._core.storage.tags import (
    ASSET_PARTITION_RANGE_END_TAG,
    ASSET_PARTITION_RANGE_START_TAG,
)

from assets.partitions import COHORT
from fairlead.domain.cohorts import stretches

#: A process that is killed leaves its run as started for ever; one this old is taken for dead.
PRESUMED_DEAD = timedelta(hours=1)

_UNFINISHED = [
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
]


def under_way(instance: dg.DagsterInstance, job: str | None = None) -> bool:
    """Whether a run, of one job or of any, has not ended yet."""
    return bool(
        instance.get_runs_count(
            dg.RunsFilter(
                job_name=job,
                statuses=_UNFINISHED,
                created_after=datetime.now(UTC) - PRESUMED_DEAD,
            )
        )
    )


def range_tags(first: str, last: str) -> dict[str, str]:
    """Return the tags that make one run cover the cohorts from `first` to `last`."""
    return {ASSET_PARTITION_RANGE_START_TAG: first, ASSET_PARTITION_RANGE_END_TAG: last}


def known_cohorts(instance: dg.DagsterInstance) -> list[str]:
    """Return every cohort Dagster knows, in the order in which they were added."""
    return list(instance.get_dynamic_partitions(COHORT))


def run_requests(
    cohorts: Iterable[str], ordered: Sequence[str], *, reason: str | None = None
) -> list[dg.RunRequest]:
    """Return as few run requests as cover a choice of cohorts, and no other cohort.

    A sensor starts no second run over the same cohorts for the same `reason`.
    """
    return [
        dg.RunRequest(
            run_key=None if reason is None else f"{first}..{last} {reason}",
            partition_key=first if first == last else None,
            tags={} if first == last else range_tags(first, last),
        )
        for first, last in stretches(cohorts, ordered)
    ]
