"""`plan_adoption`: what the consumers own now, held against the plan they are to follow."""

import time

import dagster as dg
from pydantic import Field

from assets.presentation import ROWS
from assets.published_plan import published_plan
from assets.resources import KafkaResource, SettingsResource, StoreResource
from assets.shown.adoption import describe, least_adherent_first
from assets.shown.cohorts import materialized
from assets.steps import groups_of, step
from fairlead.workflows.adoption import observe, to_record


class AdoptionConfig(dg.Config):
    """How patient to be with consumers that have yet to rejoin."""

    wait_s: float = Field(
        default=20.0,
        description="Look again for so many seconds while a plan that nobody has looked at yet is "
        "not followed to the letter.",
    )


@step(
    deps=[published_plan],
    group_name="act",
    kinds={"kafka", "postgres"},
    changed="history",
    description="Reads each group's live assignment, compares it with its published plan, and "
    "records adherence and the balance achieved beside the predicted one.",
)
def plan_adoption(
    context: dg.AssetExecutionContext,
    config: AdoptionConfig,
    settings: SettingsResource,
    kafka: KafkaResource,
    store: StoreResource,
) -> dg.MaterializeResult[None]:
    """Compare live assignments with the published plans of the run's groups."""
    with store.open() as plans, kafka.gateway() as gateway:
        groups = groups_of(context.partition_keys, settings, plans.known_groups())
        followed = plans.in_state("published", groups=groups)
        predicted = plans.predicted(followed)
        seen = observe(
            followed,
            gateway.live_groups,
            patiently={group for group, _ in plans.unobserved(followed)},
            until=time.monotonic() + config.wait_s,
        )
        plans.record_adoptions(to_record(seen))
    failed = [one for one in seen if one.error]
    for one in failed[:ROWS]:
        context.log.warning("Group %s: %s", one.plan.group, one.error)
    metrics = {group: figures for (group, _), figures in predicted.items()}
    return materialized(
        context,
        least_adherent_first(seen),
        settings.get().policies,
        lambda groups, _: describe(seen, metrics, groups),
    )
