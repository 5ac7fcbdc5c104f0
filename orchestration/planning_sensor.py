"""The sensor that starts a planning run for groups that need a plan, or are due for a decision.

A group is due if it has no decision in the present interval of its cohort's cadence
(`fairlead.domain.cohorts.overdue`).

Belongs here: the sensor, its conditions, and its skip reasons. Belongs elsewhere: sampling
(`samples`), which groups need a plan (`fairlead.workflows.diagnosing`), which requests have been
answered (`fairlead.domain.plan_requests`).
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

import dagster as dg

from assets.about import about
from assets.resources import SettingsResource, SparkResource, StoreResource
from assets.scope import run_config
from fairlead.archive import Taken
from fairlead.common.words import length, listed, plural
from fairlead.domain.cohorts import by_cohort, overdue
from fairlead.domain.plan_requests import unanswered
from fairlead.settings import Settings
from fairlead.store.analysis_memory import standing_requests
from fairlead.workflows.sampling_interval import interval
from orchestration.jobs import planning
from orchestration.outages import skip_while_away
from orchestration.runs import known_cohorts, planning_under_way, since_failure
from orchestration.tick_intervals import at_loading, ticks_of

#: Name of the tag that contains the reason for a run.
WHY_TAG: Final = "fairlead/why"
#: Minimum time between a failed planning run and the next one.
AFTER_FAILURE: Final = timedelta(minutes=2)
#: Number of sampling intervals for which a request for a plan is valid, unless a new sample repeats
#: it.
_OLD: Final = 3
_CADENCE: Final = "due by its cadence"
#: Maximum characters of the tag: Postgres indexes tags, and can index at most some 2,700 bytes.
_LONGEST: Final = 500


@dg.sensor(
    job=planning,
    minimum_interval_seconds=ticks_of(at_loading()[1]),
    default_status=dg.DefaultSensorStatus.STOPPED,
    description="Starts a planning run for groups whose samples show that a plan is worth its "
    "cost, and for groups that are due by their cohort's cadence. Waits while another planning run "
    "is under way.",
    **about("consumers"),
)
@skip_while_away
def planning_sensor(
    context: dg.SensorEvaluationContext,
    settings: SettingsResource,
    spark: SparkResource,
    store: StoreResource,
) -> dg.SensorResult | dg.SkipReason:
    """Request one run over the groups that need a plan."""
    current, archive, now = settings.get(), spark.archive(), datetime.now(UTC)
    taken = archive.taken()
    under_way = planning_under_way(context.instance)
    if under_way is not None:
        return dg.SkipReason(f"Run {under_way} is under way; plan requests wait for it.")
    failed = since_failure(context.instance, planning.name, now)
    if failed is not None and failed < AFTER_FAILURE:
        wait = length(AFTER_FAILURE - failed)
        return dg.SkipReason(f"The last planning run failed; the next one starts in {wait}.")
    with store.open() as plans:
        every = current.sampling.every if taken is None else interval(taken, current.sampling)
        requests = standing_requests(plans.engine, _OLD * every)
        decided_at = plans.last_decisions()
    open_requests = unanswered(requests, decided_at, again=current.planning.again, now=now)
    needed = {group: request.why for group, request in open_requests.items()}
    if taken is not None and any(policy.cadence for policy in current.policies):
        due = overdue(archive.groups(taken.began, now), current.policies, decided_at, now)
        needed |= {group: _CADENCE for group in due if group not in needed}
    known = set(known_cohorts(context.instance))
    cohorts = by_cohort(needed, current.policies)
    only = {cohort: groups for cohort, groups in cohorts.items() if cohort in known}
    if not only:
        return dg.SkipReason(_why_nothing(taken, needed, requests, current, now))
    groups = [group for keys in only.values() for group in keys]
    why = _reason(groups, needed)
    context.log.info(why)
    request = dg.RunRequest(
        partition_key=next(iter(only)), run_config=run_config(only), tags={WHY_TAG: why}
    )
    return dg.SensorResult([request], cursor=f"{now:%Y-%m-%d %H:%M:%S} UTC: {why}")


def _reason(groups: Sequence[str], needed: Mapping[str, str]) -> str:
    """Name the groups that the requested run covers, and the reason for the first of them."""
    first = groups[0]
    names = f"{plural(len(groups), 'group')}: {listed(groups, at_most=3)}"
    return f"{names}. {first}: {needed[first]}"[:_LONGEST]


def _why_nothing(
    taken: Taken | None,
    needed: Mapping[str, str],
    requests: Collection[str],
    settings: Settings,
    now: datetime,
) -> str:
    """Return the reason that Dagster shows if the sensor requests no run."""
    if taken is None:
        return "There is no sample yet: turn on the sensor group_samples."
    ago = length(now - taken.began)
    sampled = f"Of {plural(taken.groups, 'group')} sampled {ago} ago"
    if needed:
        return f"{sampled}, these have no partition in Dagster yet: {listed(sorted(needed))}."
    if not requests:
        return f"{sampled}, none needs a plan, or the sample is too old."
    again = length(settings.planning.again)
    return (
        f"{sampled}, those that need a plan had a decision within the last {again}: "
        f"{listed(sorted(requests))}."
    )
