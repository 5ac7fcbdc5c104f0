"""The schedule: every cohort that is due by its policy's cadence, in as few runs as possible.

Another rhythm is a setting, `planning.schedule`.
"""

from collections.abc import Sequence

import dagster as dg

from assets.about import OWNERS, changes, written_here
from assets.resources import SettingsResource, StoreResource
from fairlead.domain.cohorts import cadence_of, due
from orchestration.jobs import planning
from orchestration.rhythm import planning_rhythm
from orchestration.runs import known_cohorts, run_requests, under_way


def build_planning_schedule(
    cron_schedule: str | None = None,
) -> dg.ScheduleDefinition:
    """Return the schedule, in a rhythm of cron's; None: as the settings say."""
    return dg.schedule(
        job=planning,
        cron_schedule=cron_schedule or planning_rhythm(),
        name="planning_schedule",
        description="Plans the cohorts that are due: all of them, in a single run, but for those "
        "whose policy has a cadence and that were planned within it.",
        owners=OWNERS,
        tags=changes("consumers"),
        metadata=written_here(),
    )(_due_cohorts)


def _due_cohorts(
    context: dg.ScheduleEvaluationContext, settings: SettingsResource, store: StoreResource
) -> Sequence[dg.RunRequest] | dg.SkipReason:
    """Ask for one run over all cohorts that are due."""
    cohorts = known_cohorts(context.instance)
    if not cohorts:
        return dg.SkipReason("No cohort is known yet: turn on the sensor group_discovery.")
    if under_way(context.instance, planning.name):
        return dg.SkipReason("The planning run before is still under way.")
    policies = settings.get().policies
    if all(cadence_of(cohort, policies) is None for cohort in cohorts):
        return run_requests(cohorts, cohorts)
    with store.open() as plans:
        decided_at = plans.last_decisions()
    chosen = due(cohorts, policies, decided_at, context.scheduled_execution_time)
    if not chosen:
        return dg.SkipReason("Every cohort was planned within its policy's cadence.")
    return run_requests(chosen, cohorts)


planning_schedule = build_planning_schedule()
