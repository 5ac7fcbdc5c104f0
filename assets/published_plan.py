"""`published_plan`: what is approved goes to the plan topic, and nothing else."""

from collections.abc import Collection

import dagster as dg

from assets.assignment_plan import assignment_plan
from assets.presentation import ROWS
from assets.resources import KafkaResource, SettingsResource, StoreResource
from assets.scope import scope_of
from assets.shown.cohorts import materialized
from assets.shown.publication import describe
from assets.steps import step
from fairlead.common.words import plural
from fairlead.settings import Settings
from fairlead.store.plans import PlanStore
from fairlead.workflows.publication_pass import Pass, publish_groups


def publish(
    plans: PlanStore,
    groups: Collection[str],
    *,
    kafka: KafkaResource,
    settings: Settings,
    log: dg.DagsterLogManager,
) -> Pass:
    """Publish the approved plans of groups, and log what is said and what could not be."""
    log.info("Publishing what is approved of %s", plural(len(groups), "group"))
    asked, done = publish_groups(
        plans,
        groups,
        policies=settings.policies,
        open_gateway=kafka.gateway,
        open_topic=kafka.plan_topic,
    )
    for group, answer in asked.items():
        log.info("Group %s: asked for on a page: %s", group, answer)
    for result in [result for result in done.results if result.position is None][:ROWS]:
        log.warning("Group %s: not published: %s", result.group, result.reason)
    for difference in done.found[:ROWS]:
        log.warning("Group %s: %s; said again", difference.group, difference.what)
    for group, reason in done.untold[:ROWS]:
        log.warning("Group %s: not told of its plan again: %s", group, reason)
    for plan in done.retired[:ROWS]:
        log.warning("Group %s: version %d is taken back", plan.group, plan.version)
    for left in [left for left in done.followed if not left.reached][:ROWS]:
        log.warning("Group %s: its broker does not follow: %s", left.group, left.reason)
    return done


@step(
    deps=[assignment_plan],
    group_name="act",
    kinds={"kafka"},
    changed="consumers",
    description="Sends the approved bytes of each group's plan to the compacted plan topic, after "
    "verifying hash, approval, expiry and basis again. Publishes nothing that is not approved. "
    "Tells groups again of the plans they follow, before their leases are over.",
)
def published_plan(
    context: dg.AssetExecutionContext,
    settings: SettingsResource,
    kafka: KafkaResource,
    store: StoreResource,
) -> dg.MaterializeResult[None]:
    """Publish the approved plans of the run's groups."""
    with store.open() as plans:
        known = scope_of(context).of(plans.known_groups(), settings)
        done = publish(plans, known, kafka=kafka, settings=settings.get(), log=context.log)
    groups = [
        result.group
        for result in sorted(done.results, key=lambda outcome: outcome.position is not None)
    ]
    return materialized(
        context,
        dict.fromkeys([*groups, *(plan.group for plan in done.current)]),
        settings.get(),
        lambda groups: describe(done.results, done.current, groups),
    )
