"""Requests for runs over cohorts, and queries about runs under way.

Belongs here: the tags with which Dagster runs a range of partitions, and queries about runs.
Belongs elsewhere: dividing cohorts into ranges (`fairlead.domain.cohorts.stretches`).
"""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

import dagster as dg

from assets.partitions import COHORT
from fairlead.domain.cohorts import stretches

#: Unfinished runs of this age count as dead: if a process is killed, its run stays STARTED forever.
PRESUMED_DEAD = timedelta(hours=1)

_RANGE_START_TAG: Final = "dagster/asset_partition_range_start"
_RANGE_END_TAG: Final = "dagster/asset_partition_range_end"
_PLANNING: Final = "planning"
#: Every run that materializes this asset decides on groups, in any job.
_DECIDING: Final = dg.AssetKey("assignment_plan")
_UNFINISHED = [
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
]


def under_way(
    instance: dg.DagsterInstance, job: str | None = None, within: timedelta = PRESUMED_DEAD
) -> bool:
    """Whether a run of `job` (None: of any job) is unfinished, and at most as old as `within`."""
    return instance.get_runs_count(_unfinished(job, within)) > 0


def planning_under_way(instance: dg.DagsterInstance) -> str | None:
    """Return the id of an unfinished run that decides on groups; None: there is none."""
    for run in instance.get_runs(_unfinished()):
        if run.job_name == _PLANNING or _DECIDING in (run.asset_selection or ()):
            return run.run_id
    return None


def _unfinished(job: str | None = None, within: timedelta = PRESUMED_DEAD) -> dg.RunsFilter:
    """Return the filter for runs that `under_way` looks for."""
    since = datetime.now(UTC) - within
    return dg.RunsFilter(job_name=job, statuses=_UNFINISHED, created_after=since)


def since_failure(instance: dg.DagsterInstance, job: str, now: datetime) -> timedelta | None:
    """Return the time since the newest run of a job failed; None: the newest run did not fail."""
    newest = instance.get_run_records(dg.RunsFilter(job_name=job), limit=1)
    if not newest or newest[0].dagster_run.status != dg.DagsterRunStatus.FAILURE:
        return None
    ended = newest[0].end_time
    return None if ended is None else now - datetime.fromtimestamp(ended, UTC)


def range_tags(first: str, last: str) -> dict[str, str]:
    """Return the tags that make one run cover the cohorts from `first` to `last`."""
    return {_RANGE_START_TAG: first, _RANGE_END_TAG: last}


def known_cohorts(instance: dg.DagsterInstance) -> list[str]:
    """Return the cohorts that are partitions in Dagster, in the order in which they were added."""
    return list(instance.get_dynamic_partitions(COHORT))


def run_requests(
    cohorts: Iterable[str], ordered: Sequence[str], *, reason: str | None = None
) -> list[dg.RunRequest]:
    """Return run requests, as few as possible, that together cover exactly the given cohorts.

    If a sensor returns requests for the same cohorts and the same `reason` twice, Dagster starts no
    second run. If `reason` is None, Dagster starts a run for each request.
    """
    return [
        dg.RunRequest(
            run_key=None if reason is None else f"{first}..{last} {reason}",
            partition_key=first if first == last else None,
            tags={} if first == last else range_tags(first, last),
        )
        for first, last in stretches(cohorts, ordered)
    ]
