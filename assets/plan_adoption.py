"""`plan_adoption`: what the consumers own now, held against the plan they are to follow."""

import time
from collections.abc import Mapping, Sequence
from typing import Any

import dagster as dg
from pydantic import Field

from assets.presentation import ROWS, percent, table
from assets.published_plan import published_plan
from assets.resources import KafkaResource, SettingsResource, StoreResource
from assets.steps import of_cohorts, step
from fairlead.plans.adoption import Observed, observe


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
        followed = of_cohorts(context.partition_keys, settings, plans.in_state("published"))
        predicted = plans.predicted(followed)
        seen = observe(
            followed,
            gateway.live_groups,
            patiently={group for group, _ in plans.unobserved(followed)},
            until=time.monotonic() + config.wait_s,
        )
        for one in seen:
            if one.adoption is None or one.at is None:
                continue
            plans.record_adoption(
                one.plan.group,
                one.plan.version,
                observed_at=one.at,
                snapshot_id=one.plan.snapshot_id,
                planned=one.adoption.planned,
                as_planned=one.adoption.as_planned,
                achieved=one.adoption.achieved.as_dict(),
            )
    failed = [one for one in seen if one.error]
    for one in failed[:ROWS]:
        context.log.warning("Group %s: %s", one.plan.group, one.error)
    heaviest = {group: int(metrics["lag_max"]) for (group, _), metrics in predicted.items()}
    return dg.MaterializeResult(metadata=_metadata(seen, heaviest))


def _metadata(seen: Sequence[Observed], heaviest: Mapping[str, int]) -> dict[str, Any]:
    return {
        "groups with a published plan": len(seen),
        "followed to the letter": sum(_adherence(one) == 1 for one in seen),
        "by group": table(
            [_row(one, heaviest[one.plan.group]) for one in sorted(seen, key=_adherence)],
            {
                "group": "Consumer group, the least adherent first",
                "version": "The published version",
                "adherence": "Share of partitions that their planned member owns",
                "heaviest predicted": "Records of the heaviest member under the plan",
                "heaviest achieved": "The same, by the live assignment, under the plan's lag",
                "lower bound": "No assignment has a lighter heaviest member",
                "note": "Why the live assignment could not be read",
            },
        ),
    }


def _adherence(one: Observed) -> float:
    return one.adoption.adherence if one.adoption else -1.0


def _row(one: Observed, heaviest_predicted: int) -> dict[str, Any]:
    adoption = one.adoption
    return {
        "group": one.plan.group,
        "version": one.plan.version,
        "adherence": percent(adoption.adherence if adoption else None),
        "heaviest predicted": heaviest_predicted,
        "heaviest achieved": adoption.achieved.lag_max if adoption else None,
        "lower bound": adoption.achieved.lag_lower_bound if adoption else None,
        "note": one.error,
    }
