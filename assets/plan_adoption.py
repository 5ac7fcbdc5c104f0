"""`plan_adoption`: compare the present owners of partitions with the published plan."""

import dagster as dg
from pydantic import Field

from assets.presentation import ROWS
from assets.published_plan import published_plan
from assets.resources import KafkaResource, SettingsResource, StoreResource
from assets.scope import scope_of
from assets.shown.adoption import describe, least_adherent_first
from assets.shown.cohorts import materialized
from assets.steps import step
from fairlead.workflows.adoption import PATIENCE_S, check
from fairlead.workflows.following import follow


class AdoptionConfig(dg.Config):
    """How long to wait for consumers that have not rejoined yet."""

    wait_s: float = Field(
        default=PATIENCE_S,
        description="Maximum seconds to wait until a new plan is followed completely.",
    )


@step(
    deps=[published_plan],
    group_name="act",
    kinds={"kafka", "postgres"},
    changed="consumers",
    description="Triggers a rebalance if a broker assigns otherwise than the plan (KIP-848), reads "
    "each group's live assignment, and stores the share of partitions that are owned as planned.",
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
        groups = scope_of(context).of(plans.known_groups(), settings)
        adoptions = follow(
            gateway,
            gateway.settings,
            groups,
            lambda assigned: plans.in_state("published", groups=assigned),
        )
        for adoption in [adoption for adoption in adoptions if not adoption.reached][:ROWS]:
            context.log.warning(
                "Group %s: its broker does not follow the plan: %s",
                adoption.group,
                adoption.reason,
            )
        observations = check(
            plans, groups, gateway.live_groups, wait_s=config.wait_s, log=context.log.info
        )
    remarkable = [observed for observed in observations if observed.error or observed.held_up]
    for observed in remarkable[:ROWS]:
        context.log.warning("Group %s: %s", observed.plan.group, observed.error or observed.held_up)
    return materialized(
        context,
        least_adherent_first(observations),
        settings.get(),
        lambda groups: describe(observations, groups),
    )
