"""The schedule: every cohort, in one run, at a fixed cadence."""

from collections.abc import Sequence

import dagster as dg

from orchestration.jobs import planning
from orchestration.runs import known_cohorts, run_requests, under_way

EVERY_QUARTER_OF_AN_HOUR = "*/15 * * * *"


@dg.schedule(
    job=planning,
    cron_schedule=EVERY_QUARTER_OF_AN_HOUR,
    description="Plans every cohort in a single run.",
)
def planning_schedule(
    context: dg.ScheduleEvaluationContext,
) -> Sequence[dg.RunRequest] | dg.SkipReason:
    """Ask for one run over all cohorts."""
    cohorts = known_cohorts(context.instance)
    if not cohorts:
        return dg.SkipReason("No cohort is known yet: turn on the sensor group_discovery.")
    if under_way(context.instance, planning.name):
        return dg.SkipReason("The planning run before is still under way.")
    return run_requests(cohorts, cohorts)
