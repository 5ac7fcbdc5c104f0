"""The schedule that starts planning runs for all cohorts that are due, in as few runs as possible.

A cohort (groups that are planned together) is due unless it was planned in the present interval of
its cadence (`fairlead.domain.cohorts`). The setting `planning.schedule` is the schedule's cron
expression.
"""

from collections.abc import Sequence

import dagster as dg

from assets.about import about
from assets.resources import SettingsResource, SparkResource, StoreResource
from fairlead.domain.cohorts import cadence_of, due, planned_cohorts
from orchestration.jobs import planning
from orchestration.outages import skip_while_away
from orchestration.runs import known_cohorts, run_requests, under_way
from orchestration.tick_intervals import at_loading


def build_planning_schedule(
    cron_schedule: str | None = None,
) -> dg.ScheduleDefinition:
    """Return the planning schedule; `cron_schedule` replaces the setting `planning.schedule`."""
    return dg.schedule(
        job=planning,
        cron_schedule=cron_schedule or at_loading()[0].schedule,
        name="planning_schedule",
        description="Plans all cohorts, in as few runs as possible, except those that were planned "
        "in the present interval of their cadence.",
        **about("consumers"),
    )(_due_cohorts)


@skip_while_away
def _due_cohorts(
    context: dg.ScheduleEvaluationContext,
    settings: SettingsResource,
    spark: SparkResource,
    store: StoreResource,
) -> Sequence[dg.RunRequest] | dg.SkipReason:
    """Request runs, as few as possible, that cover all cohorts that are due."""
    known = known_cohorts(context.instance)
    if not known:
        return dg.SkipReason("There is no cohort yet: turn on the sensor group_discovery.")
    if under_way(context.instance, planning.name):
        return dg.SkipReason("The previous planning run is still under way.")
    current = settings.get()
    policies = current.policies
    cohorts = planned_cohorts(known, current.discovery, policies)
    if any(cadence_of(cohort, policies) is not None for cohort in cohorts):
        archive, now = spark.archive(), context.scheduled_execution_time
        taken = archive.taken()
        seen = [] if taken is None else archive.groups(taken.began, now)
        with store.open() as plans:
            decided_at = plans.last_decisions()
        cohorts = due(cohorts, policies, decided_at, now, seen=seen)
    if not cohorts:
        return dg.SkipReason(
            "Every cohort was planned in this interval of its cadence, or has no group to plan."
        )
    return run_requests(cohorts, known)


planning_schedule = build_planning_schedule()
