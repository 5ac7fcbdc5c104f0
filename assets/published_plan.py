"""`published_plan`: what is approved goes to the plan topic, and nothing else."""

from datetime import UTC, datetime

import dagster as dg

from assets.assignment_plan import assignment_plan
from assets.presentation import table
from assets.resources import KafkaResource, SettingsResource, StoreResource
from assets.steps import OF_ONE_GROUP, of_cohorts, step
from fairlead.plans.publication import Published, publish


@step(
    deps=[assignment_plan],
    group_name="act",
    kinds={"kafka"},
    description="Sends the approved bytes of each group's plan to the compacted plan topic, after "
    "verifying hash, approval, expiry and basis again. Publishes nothing that is not approved.",
)
def published_plan(
    context: dg.AssetExecutionContext,
    settings: SettingsResource,
    kafka: KafkaResource,
    store: StoreResource,
) -> dg.MaterializeResult[None]:
    """Publish the approved plans of the run's groups."""
    key = settings.get().kafka.signing_key
    results: list[Published] = []
    with store.open() as plans, kafka.gateway() as gateway, kafka.plan_topic() as topic:
        waiting = of_cohorts(context.partition_keys, settings, plans.approved_unpublished())
        if waiting:
            topic.ensure()
        for plan in waiting:
            try:
                published = publish(
                    plans,
                    plan.group,
                    live=gateway.live_group,
                    sender=topic,
                    now=datetime.now(UTC),
                    signing_key=key.get_secret_value().encode() if key else None,
                )
            except OF_ONE_GROUP as error:
                context.log.warning("Group %s: %s", plan.group, error)
                published = Published(plan.group, plan.version, None, str(error))
            if published:
                results.append(published)
    return dg.MaterializeResult(
        metadata={
            "published": sum(one.position is not None for one in results),
            "refused": sum(one.position is None for one in results),
            "plans": table(
                [
                    {
                        "group": one.group,
                        "version": one.version,
                        "outcome": "published" if one.position else "refused",
                        "where or why not": one.reason,
                    }
                    for one in results
                ],
                {
                    "group": "Consumer group",
                    "version": "Version of its plan",
                    "outcome": "Published, or refused and left as it is or stale",
                    "where or why not": "Partition and offset in the plan topic, or the reason",
                },
            ),
        }
    )
