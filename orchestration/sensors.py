"""Sensors that discover groups, publish plans, and show later steps of plans in the UI."""

import hashlib
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Final

import dagster as dg

from assets.about import about
from assets.partitions import cohort
from assets.published_plan import publish
from assets.resources import KafkaResource, SettingsResource, StoreResource
from assets.shown.cohorts import step_metadata
from assets.shown.plans import describe_step
from assets.shown.publication import describe
from fairlead.common.words import listed
from fairlead.domain.cohorts import by_cohort, cohort_of, discover
from fairlead.store.event_queries import read_steps
from fairlead.workflows.delivery import PublishOptions
from fairlead.workflows.publication import due_groups
from orchestration.jobs import adoption
from orchestration.outages import skip_while_away
from orchestration.runs import known_cohorts, run_requests, under_way

#: Seconds between two ticks (calls) of the sensor that publishes approved plans.
RECONCILE_EVERY_S: Final = 15
#: Seconds. Longest wait for a broker. Meanwhile, other sensors may have to wait, too.
PATIENCE_S: Final = 10.0
#: Maximum number of groups whose plans one tick sends, in some 10 s. Other groups wait for the next
#: tick.
AT_ONCE: Final = 500
#: Seconds between two ticks of the sensor that shows the steps of plans in the UI.
REPORT_EVERY_S: Final = 30
#: Maximum number of asset events that one tick logs, because Dagster needs some 20 ms for each. The
#: plans' complete history is in Postgres.
_MOST_EVENTS: Final = 50


@dg.sensor(
    minimum_interval_seconds=60,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Adds a Dagster partition for each new cohort of consumer groups, and removes the "
    "Dagster partitions of cohorts without a group. Removes none while a run is under way, "
    "because each step of a run looks its partitions up again.",
    **about("partitions"),
)
@skip_while_away
def group_discovery(
    context: dg.SensorEvaluationContext, kafka: KafkaResource, settings: SettingsResource
) -> dg.SensorResult | dg.SkipReason:
    """Keep one Dagster partition for each cohort of groups in the Kafka cluster."""
    current = settings.get()
    with kafka.gateway() as gateway:
        discovered = discover(gateway.list_groups(), current.discovery, current.policies)
    known = known_cohorts(context.instance)
    new = [key for key in discovered if key not in set(known)]
    removed = [key for key in known if key not in discovered]
    if removed and under_way(context.instance):
        removed = []
    if not (new or removed):
        return dg.SkipReason(f"No cohort was added or removed: there are {len(known)}.")
    context.log.info("Added %s; removed %s", new or "none", removed or "none")
    return dg.SensorResult(
        dynamic_partitions_requests=[
            *([cohort.build_add_request(new)] if new else []),
            *([cohort.build_delete_request(removed)] if removed else []),
        ]
    )


@dg.sensor(
    job=adoption,
    minimum_interval_seconds=RECONCILE_EVERY_S,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Reconciles the plan topic with the database, without a run: publishes approved "
    "plans, renews leases, carries out requests from web pages, completes interrupted "
    "publications. For groups with a new plan, starts the job `adoption`.",
    **about("consumers"),
)
@skip_while_away
def approved_plans(
    context: dg.SensorEvaluationContext, store: StoreResource, settings: SettingsResource
) -> dg.SensorResult | dg.SkipReason:
    """Publish approved plans, and send all other records that the plan topic lacks."""
    current = settings.get()
    with store.open() as plans:
        due, why = due_groups(plans, PublishOptions.of(current.kafka), datetime.now(UTC))
        covered = [group for group in due if current.discovery.covers(group)]
        if not covered:
            return dg.SkipReason(". ".join(filter(None, [_why_nothing(due), why])))
        groups = covered[:AT_ONCE]
        results = publish(plans, groups, current, context.log, at_most_s=PATIENCE_S)
        in_force = plans.in_state("proposed", "published", groups=groups)
    known = known_cohorts(context.instance)
    reasons = [f"{result.group}: {result.summary}" for result in results]
    members = by_cohort(dict.fromkeys(result.group for result in results), current.policies)
    changed = [key for key in members if key in set(known)]
    sent = [result for result in results if result.published]
    adopting = {cohort_of(result.group, current.policies) for result in sent}.intersection(known)
    versions = "\n".join(sorted(f"{result.group} {result.version}" for result in sent))
    return dg.SensorResult(
        asset_events=[
            # A materialization would claim that all groups of the cohort were handled. Unless the
            # cohort is a single group, log an observation instead.
            (dg.AssetMaterialization if members[key] == [key] else dg.AssetObservation)(
                "published_plan",
                partition=key,
                metadata=step_metadata(
                    context.log, members[key], current.web, partial(describe, results, in_force)
                ),
            )
            for key in changed[:_MOST_EVENTS]
        ],
        run_requests=run_requests(
            adopting, known, reason=hashlib.sha256(versions.encode()).hexdigest()[:16]
        ),
        skip_reason=None if adopting else listed(reasons) or "There was nothing to send.",
    )


@dg.sensor(
    minimum_interval_seconds=REPORT_EVERY_S,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Shows the latest step of each group's plan (approved, rejected, published, "
    "withdrawn and so on) at the asset assignment_plan, with its time and who took it.",
    **about("nothing"),
)
@skip_while_away
def plan_life(
    context: dg.SensorEvaluationContext, store: StoreResource, settings: SettingsResource
) -> dg.SensorResult:
    """Log an observation for each plan whose state changed since the last tick."""
    with store.connect() as engine:
        steps, cursor = read_steps(engine, context.cursor)
    known, policies = set(known_cohorts(context.instance)), settings.get().policies
    last = {step["group"]: step for step in steps}  # the last step of each group
    events = [
        dg.AssetObservation("assignment_plan", partition=cohort, metadata=describe_step(step))
        for step in last.values()
        if (cohort := cohort_of(step["group"], policies)) in known
    ]
    if not events:
        return dg.SensorResult(skip_reason="No plan changed its state.", cursor=cursor)
    if len(events) > _MOST_EVENTS:
        context.log.info(
            "%d plans changed their state; showing the last %d", len(events), _MOST_EVENTS
        )
    return dg.SensorResult(asset_events=events[-_MOST_EVENTS:], cursor=cursor)


def _why_nothing(left_out: Sequence[str]) -> str:
    """Return why nothing is sent: there is nothing, or only groups that `discovery` excludes."""
    if not left_out:
        return "There is nothing to send."
    return (
        f"Discovery excludes {listed(left_out)}. `fairlead plans publish GROUP` publishes an "
        "approved plan of such a group"
    )
