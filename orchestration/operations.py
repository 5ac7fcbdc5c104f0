"""Steps that people take in Dagster's UI: one job per step, configured in the launchpad.

Belongs here: configurations, and the person's name. Belongs elsewhere: the rules for steps
(`fairlead.workflows`, the database).
"""

from datetime import UTC, datetime
from typing import Any, Final

import dagster as dg
from pydantic import Field

from assets.about import Changed, about
from assets.presentation import link
from assets.resources import KafkaResource, SettingsResource, StoreResource
from assets.retry_policy import RETRIES, failing_at_once
from assets.shown.plans import FOLLOWING
from fairlead.domain.policy import policy_for
from fairlead.surfaces import offers
from fairlead.workflows.delivery import PublishOptions
from fairlead.workflows.reconciling import withdraw
from fairlead.workflows.rollback import rollback as roll_group_back
from orchestration.proxy import ACTOR_TAG


class GroupConfig(dg.Config):
    """A group, and the reason for the step."""

    group: str = Field(description="The consumer group.")
    reason: str = Field(pattern=r"\S", description="Why; stored in the plan's history.")


class VersionConfig(GroupConfig):
    """A version of a group's plan, and the reason for the step."""

    version: int = Field(description="The version of the group's plan.")


class ApprovalConfig(VersionConfig):
    """A version to approve, the hash of its document, and the reason."""

    sha256: str | None = Field(
        default=None,
        description="Hash of the document that you have read. If empty, no hash is compared.",
    )


@dg.op(retry_policy=RETRIES)
@failing_at_once()
def approve_plan(
    context: dg.OpExecutionContext,
    config: ApprovalConfig,
    store: StoreResource,
) -> None:
    """Approve a plan that waits for approval; the planner then publishes it."""
    with store.open() as plans:
        plan = plans.get(config.group, config.version)
        plans.approve(
            config.group,
            config.version,
            sha256=config.sha256 or plan.sha256,
            reason=config.reason,
            actor=_actor(context),
        )
    context.log.info("Approved version %d of %s", config.version, config.group)
    _report(context, "approved", sha256=plan.sha256)


@dg.op(retry_policy=RETRIES)
@failing_at_once()
def reject_plan(
    context: dg.OpExecutionContext, config: VersionConfig, store: StoreResource
) -> None:
    """Reject a plan that waits for approval: the consumers keep their partitions."""
    with store.open() as plans:
        plans.reject(config.group, config.version, reason=config.reason, actor=_actor(context))
    _report(context, "rejected")


@dg.op(retry_policy=RETRIES)
@failing_at_once()
def rollback_plan(
    context: dg.OpExecutionContext,
    config: VersionConfig,
    settings: SettingsResource,
    kafka: KafkaResource,
    store: StoreResource,
) -> None:
    """Go back to an old version: propose its assignment as a new version."""
    with store.open() as plans, kafka.gateway() as gateway:
        plan, approval = roll_group_back(
            plans,
            config.group,
            config.version,
            policy=policy_for(config.group, settings.get().policies),
            live=gateway.live_group,
            reason=config.reason,
            now=datetime.now(UTC),
            actor=_actor(context),
        )
    effect = {}
    if not approval.approved:
        approve = offers.approve(plan, "")
        by = approve.launchpad and link("Open the launchpad of the job approve", approve.launchpad)
        effect = {"to approve it": by or approve.statement}
    _report(
        context,
        plan.state,
        version=plan.version,
        approval=approval.reason,
        sha256=plan.sha256,
        **effect,
    )


@dg.op(retry_policy=RETRIES)
@failing_at_once()
def withdraw_plan(
    context: dg.OpExecutionContext,
    config: GroupConfig,
    settings: SettingsResource,
    kafka: KafkaResource,
    store: StoreResource,
) -> None:
    """Withdraw a published plan: the consumers then use their fallback assignor."""
    with store.open() as plans, kafka.plan_topic() as topic:
        result = withdraw(
            plans,
            config.group,
            topic=topic,
            options=PublishOptions.of(settings.get().kafka),
            reason=config.reason,
            actor=_actor(context),
        )
    _report(context, "withdrawn", version=result.version, place=result.place)


def _job(name: str, op: dg.OpDefinition, changed: Changed) -> dg.JobDefinition:
    """Return a job that runs `op` and has the op's description."""

    @dg.job(name=name, description=op.description, **about(changed))
    def job() -> None:
        op()

    return job


OPERATIONS: Final = [
    _job("approve", approve_plan, "consumers"),
    _job("reject", reject_plan, "plans"),
    _job("rollback", rollback_plan, "consumers"),
    _job("withdraw", withdraw_plan, "consumers"),
]


def _report(context: dg.OpExecutionContext, state: str, **done: Any) -> None:
    """Show the new state of a plan and what happens next, as metadata of the run and in its log."""
    following = FOLLOWING.get(state, "the version waits for a person: run the job `approve`")
    context.log.info("What happens next: %s", following)
    context.add_output_metadata({"state": state, "what happens next": following, **done})


def _actor(context: dg.OpExecutionContext) -> str | None:
    return context.run.tags.get(ACTOR_TAG) or None  # "" if the run has no person
