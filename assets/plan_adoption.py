"""`plan_adoption`: what the consumers own now, held against the plan they are to follow."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import dagster as dg
from pydantic import Field
from tenacity import RetryCallState, Retrying, retry_if_result, wait_fixed

from assets.presentation import percent, table
from assets.published_plan import published_plan
from assets.resources import KafkaResource, SettingsResource, StoreResource
from assets.steps import OF_ONE_GROUP, of_cohorts, step
from fairlead.kafka.gateway import KafkaGateway, LiveGroup
from fairlead.plans.adoption import Adoption, compare
from fairlead.store.plans import PlanStore
from fairlead.store.records import StoredPlan

LOOK_AGAIN_S: Final = 1.0


class AdoptionConfig(dg.Config):
    """How patient to be with consumers that have yet to rejoin."""

    wait_s: float = Field(
        default=20.0,
        description="Look again for so many seconds while a plan that nobody has looked at yet is "
        "not followed to the letter.",
    )


@dataclass(frozen=True)
class Outcome:
    """One group's adoption, or why it could not be read, beside what its plan predicted."""

    plan: StoredPlan
    adoption: Adoption | None
    error: str
    heaviest_predicted: int


@step(
    deps=[published_plan],
    group_name="act",
    kinds={"kafka", "postgres"},
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
        new = plans.unobserved(followed)
        deadline = time.monotonic() + config.wait_s
        outcomes = [
            _look(gateway, plans, plan, deadline if (plan.group, plan.version) in new else 0.0)
            for plan in followed
        ]
    for outcome in outcomes:
        if outcome.error:
            context.log.warning("Group %s: %s", outcome.plan.group, outcome.error)
    return dg.MaterializeResult(metadata=_metadata(outcomes))


def _look(gateway: KafkaGateway, plans: PlanStore, plan: StoredPlan, deadline: float) -> Outcome:
    """Look at a group until it follows its plan or the deadline passes; record the last look."""
    heaviest = int(plans.predicted(plan)["lag_max"])

    def look() -> tuple[LiveGroup, Adoption]:
        live = gateway.live_group(plan.group)
        owned = {member.name: member.partitions for member in live.members}
        return live, compare(document, owned)

    try:
        document = plan.verify()
        live, adoption = Retrying(
            retry=retry_if_result(lambda seen: seen[1].adherence < 1),
            stop=lambda _: time.monotonic() >= deadline,
            wait=wait_fixed(LOOK_AGAIN_S),
            retry_error_callback=_last_result,
        )(look)
    except OF_ONE_GROUP as error:
        return Outcome(plan, None, str(error), heaviest)
    plans.record_adoption(
        plan.group,
        plan.version,
        observed_at=live.observed_at,
        snapshot_id=plan.snapshot_id,
        planned=adoption.planned,
        as_planned=adoption.as_planned,
        achieved=adoption.achieved.as_dict(),
    )
    return Outcome(plan, adoption, "", heaviest)


def _last_result(state: RetryCallState) -> Any:
    """Give what was seen last instead of an error when patience ends."""
    return state.outcome.result() if state.outcome else None


def _metadata(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    return {
        "groups with a published plan": len(outcomes),
        "followed to the letter": sum(_adherence(outcome) == 1 for outcome in outcomes),
        "by group": table(
            [_row(outcome) for outcome in sorted(outcomes, key=_adherence)],
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


def _adherence(outcome: Outcome) -> float:
    return outcome.adoption.adherence if outcome.adoption else -1.0


def _row(outcome: Outcome) -> dict[str, Any]:
    adoption = outcome.adoption
    return {
        "group": outcome.plan.group,
        "version": outcome.plan.version,
        "adherence": percent(adoption.adherence if adoption else None),
        "heaviest predicted": outcome.heaviest_predicted,
        "heaviest achieved": adoption.achieved.lag_max if adoption else None,
        "lower bound": adoption.achieved.lag_lower_bound if adoption else None,
        "note": outcome.error,
    }
