"""An approval takes effect in its own run: publication, and who adopts the plan.

Belongs here: whether this code location may publish, and showing it as the assets do. Does not: how
a plan is published (`assets.published_plan`), who may approve it (the database).
"""

from collections.abc import Mapping
from typing import Any, Final

import dagster as dg

from assets.plan_adoption import look_at
from assets.published_plan import publish
from assets.resources import KafkaResource, SettingsResource, StoreResource
from assets.shown import adoption, publication
from assets.shown.cohorts import shown
from fairlead.domain.cohorts import cohort_of
from fairlead.workflows.adoption import PATIENCE_S
from orchestration.outages import AWAY
from orchestration.runs import known_cohorts
from orchestration.sensors import LOOK_EVERY_S

_AGAIN: Final = "the sensor approved_plans tries again, and `fairlead groups` says when"
_LATER: Final = (
    f"the sensor approved_plans publishes it within {LOOK_EVERY_S} s, if the group still is what "
    "the plan was made for; the asset plan_adoption then shows who follows it"
)


def publish_approved(
    context: dg.OpExecutionContext,
    group: str,
    version: int,
    *,
    settings: SettingsResource,
    kafka: KafkaResource,
    store: StoreResource,
) -> dict[str, Any]:
    """Publish what was approved of a group, and see who adopts it; returns what the run shows.

    A login that may approve but not publish leaves it to the sensor, wherever that runs. So does
    who cannot reach Kafka now, and who finds somebody else at the group's plan.

    Raises
    ------
    Failure
        The plan is stale, or stays approved: why it was not published.
    ConfigurationError
        The plan topic cannot be written.
    """
    current = settings.get()
    with store.open() as plans:
        if not plans.outbox().may_send():
            return {"what happens next": _LATER}
        try:
            done = publish(plans, [group], kafka=kafka, settings=current, log=context.log)
        except AWAY as error:  # what was decided has been decided
            context.log.warning("Not published by this run: %s", error)
            return {"what happens next": _LATER}
        metadata = shown(
            context.log,
            [group],
            current.web,
            lambda groups: publication.describe(done.results, done.current, groups),
        )
        _show(context, "published_plan", group, settings, metadata)
        for refused in (result for result in done.results if result.position is None):
            raise dg.Failure(
                f"Version {refused.version} is approved, and was not published: {refused.reason}"
                + (f"; {_AGAIN}" if refused.waits else ""),
                allow_retries=False,
            )
        plan = plans.get(group, version)
        if plan.state != "published":
            return {"state": plan.state, "what happens next": _LATER}
        where = {"topic": plan.topic, "partition": plan.partition, "offset": plan.record_offset}
        following = "consumers follow it: plan_adoption shows how far; the job retire takes it back"
        try:
            seen = look_at(plans, [group], kafka=kafka, wait_s=PATIENCE_S, log=context.log)
        except AWAY as error:
            context.log.warning("Published; who follows it is not known: %s", error)
        else:
            adopted = shown(
                context.log, [group], current.web, lambda groups: adoption.describe(seen, groups)
            )
            _show(context, "plan_adoption", group, settings, adopted)
            where["followed"] = adopted.get("followed", "not known")
    return {"state": plan.state, **where, "what happens next": following}


def _show(
    context: dg.OpExecutionContext,
    asset: str,
    group: str,
    settings: SettingsResource,
    metadata: Mapping[str, Any],
) -> None:
    """Show on an asset what its own run would show; beside what it shows of a whole cohort."""
    cohort = cohort_of(group, settings.get().policies)
    if cohort not in known_cohorts(context.instance):
        return
    event = dg.AssetMaterialization if cohort == group else dg.AssetObservation
    context.log_event(event(asset, partition=cohort, metadata=metadata))
