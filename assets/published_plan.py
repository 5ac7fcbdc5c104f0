"""`published_plan`: send approved plans, and no others, to the plan topic."""

from collections.abc import Collection
from logging import Logger

import dagster as dg

from assets.assignment_plan import assignment_plan
from assets.presentation import ROWS
from assets.resources import SettingsResource, StoreResource
from assets.scope import scope_of
from assets.shown.cohorts import materialized
from assets.shown.publication import describe
from assets.steps import step
from fairlead.common.words import plural
from fairlead.settings import Settings
from fairlead.store.plans import PlanStore
from fairlead.workflows.publication import publish_groups
from fairlead.workflows.reconciling import StepResult


def publish(
    plans: PlanStore,
    groups: Collection[str],
    settings: Settings,
    log: Logger,
    *,
    at_most_s: float | None = None,
) -> list[StepResult]:
    """Make the plan topic agree with the database; return the steps that were carried out.

    Logs plans that were not sent, and records that were sent again, with the reason.
    """
    log.info("Reconciling the plan topic with the database: %s", plural(len(groups), "group"))
    answers, results = publish_groups(plans, groups, settings, at_most_s=at_most_s)
    for group, answer in answers.items():
        log.info("Group %s: request from a page: %s", group, answer)
    unusual = [result for result in results if result.reason]
    for result in unusual[:ROWS]:
        log.warning("Group %s: version %d: %s", result.group, result.version, result.summary)
    return results


@step(
    deps=[assignment_plan],
    group_name="act",
    kinds={"kafka"},
    changed="consumers",
    description="Sends the approved bytes of each group's plan to the compacted plan topic, after "
    "verifying hash, approval, expiry and basis again. Publishes nothing that is not approved. "
    "Renews the leases of published plans.",
)
def published_plan(
    context: dg.AssetExecutionContext, settings: SettingsResource, store: StoreResource
) -> dg.MaterializeResult[None]:
    """Publish the approved plans of the run's groups."""
    current = settings.get()
    with store.open() as plans:
        groups = scope_of(context).of(plans.known_groups(), settings)
        results = publish(plans, groups, current, context.log)
        in_force = plans.in_state("proposed", "published", groups=groups)
    first = [
        result.group for result in sorted(results, key=lambda result: result.record is not None)
    ]
    return materialized(
        context,
        dict.fromkeys([*first, *(plan.group for plan in in_force)]),
        current,
        lambda groups: describe(results, in_force, groups),
    )
