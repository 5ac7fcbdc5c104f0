"""Sensors: new and vanished groups, approvals outside a planning run, and what became of plans."""

import hashlib
import time
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Final

import dagster as dg

from assets.about import about
from assets.partitions import COHORT, cohort
from assets.resources import KafkaResource, SettingsResource, StoreResource
from assets.shown.plans import describe_step
from fairlead.common.words import listed
from fairlead.domain.cohorts import cohort_of, discover
from fairlead.domain.records import StoredPlan
from fairlead.store import acts
from fairlead.store.attempts import Attempt
from fairlead.store.brakes import brake_on
from fairlead.store.hindsight import regrets
from fairlead.store.history_queries import read_steps
from fairlead.store.outbox import Outbox
from fairlead.workflows.delivery import PublishOptions
from fairlead.workflows.lease import due
from orchestration.jobs import publication
from orchestration.outages import skip_while_away
from orchestration.runs import known_cohorts, run_requests, under_way

#: How soon an approval is seen.
LOOK_EVERY_S: Final = 30
#: Jobs that publish what is approved; the last two where they may.
PUBLISHING: Final = (publication.name, "approve", "rollback")
#: Plans of a tick of which it is said: each costs Dagster some 20 ms. Postgres has all.
_MOST_EVENTS: Final = 50
#: A run that says nothing of a plan that waits, because it was killed say, is followed by another
#: after so many seconds, not at every tick. Where a run says why, it says when the next one is due.
TRY_AGAIN_S: Final = 600


@dg.sensor(
    minimum_interval_seconds=60,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Adds a partition for each new cohort of consumer groups and removes those whose "
    "groups are gone. Nothing is removed while a run is under way: runs read their range anew at "
    "each step.",
    **about("partitions"),
)
@skip_while_away
def group_discovery(
    context: dg.SensorEvaluationContext, kafka: KafkaResource, settings: SettingsResource
) -> dg.SensorResult | dg.SkipReason:
    """Keep the partitions equal to the cohorts of the cluster's groups."""
    current = settings.get()
    with kafka.gateway() as gateway:
        found = discover(gateway.list_groups(), current.discovery, current.policies)
    known = known_cohorts(context.instance)
    new = [key for key in found if key not in set(known)]
    gone = [key for key in known if key not in found]
    if gone and under_way(context.instance):
        gone = []
    if not (new or gone):
        return dg.SkipReason(f"The {len(known)} known cohorts are those of the cluster's groups.")
    context.log.info("Added %s; removed %s", new or "none", gone or "none")
    return dg.SensorResult(
        dynamic_partitions_requests=[
            *([cohort.build_add_request(new)] if new else []),
            *([cohort.build_delete_request(gone)] if gone else []),
        ]
    )


@dg.sensor(
    job=publication,
    minimum_interval_seconds=LOOK_EVERY_S,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Starts publication of plans that were approved after their planning run ended, "
    "and of those that groups are to be told of again before their leases are over; does what "
    "people asked for on pages.",
    **about("consumers"),
)
@skip_while_away
def approved_plans(
    context: dg.SensorEvaluationContext, store: StoreResource, settings: SettingsResource
) -> list[dg.RunRequest] | dg.SkipReason:
    """Ask for a run over the cohorts that have something to be sent, or to be settled."""
    if any(under_way(context.instance, name) for name in PUBLISHING):
        return dg.SkipReason("A publication is under way; it may publish what waits.")
    now = datetime.now(UTC)
    with store.open() as plans:
        brakes = plans.brakes()
        approved = plans.approved_unpublished()
        waiting = [plan for plan in approved if brake_on(plan, brakes) is None]
        again = due(plans, PublishOptions.of(settings.get().kafka), now)
        again += [intent.group for intent in Outbox(plans.engine).outstanding()]
        asked = acts.asked(plans.engine)
        asking = {act.group for act in asked if act.group is not None}
        again += sorted(asking)
        regretted = [
            regret for regret in regrets(plans.engine) if regret.automatic and not regret.back_to
        ]
        again += [regret.group for regret in regretted]
        attempts = plans.last_attempts([*(plan.group for plan in waiting), *again])
    known = known_cohorts(context.instance)
    current = settings.get()

    def cohorts_of(groups: Iterable[str]) -> set[str]:
        planned = filter(current.discovery.covers, groups)
        return {cohort_of(group, current.policies) for group in planned} & set(known)

    covered = [attempt for attempt in attempts.values() if cohorts_of([attempt.group])]
    # What a person asks for does not wait for what was not sent.
    later = {attempt.group for attempt in covered if attempt.again_at > now} - asking
    waiting = [plan for plan in waiting if plan.group not in later]
    again = [group for group in again if group not in later]
    cohorts = cohorts_of([*(plan.group for plan in waiting), *again])
    if not cohorts:
        # Of groups that do not exist there is no partition: a run over any other ends their plans.
        elsewhere = [*(plan.group for plan in waiting), *again]
        today = _digest([*elsewhere, f"{now:%Y-%m-%d}"])
        if known and elsewhere and context.cursor != today:
            context.update_cursor(today)
            return run_requests(known[:1], known, reason=today)
        not_sent = [attempt for attempt in covered if attempt.group in later]
        held = [str(brake) for plan in approved if (brake := brake_on(plan, brakes))]
        nothing = _why_nothing((plan.group for plan in waiting), not_sent)
        return dg.SkipReason(". ".join([nothing, *dict.fromkeys(held)]))
    tried = [attempt for attempt in covered if attempt.group not in later]
    reason = _what_waits(waiting, [*again, *(str(act.id) for act in asked)], tried, time.time())
    return run_requests(cohorts, known, reason=reason)


@dg.sensor(
    minimum_interval_seconds=LOOK_EVERY_S,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Says on the asset assignment_plan what has become of plans since their run: who "
    "approved or rejected them, in whichever way, and that they are published.",
    **about("nothing"),
)
@skip_while_away
def plan_life(
    context: dg.SensorEvaluationContext, store: StoreResource, settings: SettingsResource
) -> dg.SensorResult:
    """Leave an observation for each plan that has taken a step since the last tick."""
    with store.connect() as engine:
        steps, cursor = read_steps(engine, context.cursor)
    known, policies = set(known_cohorts(context.instance)), settings.get().policies
    last = {step["group"]: step for step in steps}  # of each group, the last one counts
    seen = [
        dg.AssetObservation("assignment_plan", partition=cohort, metadata=describe_step(step))
        for step in last.values()
        if (cohort := cohort_of(step["group"], policies)) in known
    ]
    if not seen:
        return dg.SensorResult(skip_reason="No plan took a step.", cursor=cursor)
    if len(seen) > _MOST_EVENTS:
        context.log.info("%d plans took a step; the last %d are said", len(seen), _MOST_EVENTS)
    return dg.SensorResult(asset_events=seen[-_MOST_EVENTS:], cursor=cursor)


def _why_nothing(elsewhere: Iterable[str], not_sent: Sequence[Attempt]) -> str:
    """Say that nothing is sent now: what is tried again later, and whose plans nobody sends."""
    if not_sent:
        first = min(not_sent, key=lambda attempt: attempt.again_at)
        names = listed(sorted(attempt.group for attempt in not_sent))
        return (
            f"Not sent, and tried again from {first.again_at.astimezone(UTC):%H:%M:%S} UTC on: "
            f"{names}. {first.group}: {first.reason}"
        )
    nothing = f"No approved plan waits in the partitions of {COHORT!r}."
    names = listed(sorted(elsewhere))
    if not names:
        return nothing
    return (
        f"{nothing} Approved, but in none of them, as what discovery leaves out: {names}. "
        "`fairlead plans publish GROUP` publishes such a plan."
    )


def _what_waits(
    plans: Iterable[StoredPlan], again: Iterable[str], attempts: Iterable[Attempt], now: float
) -> str:
    """Name what waits, in terms that change with each attempt, and every `TRY_AGAIN_S` seconds."""
    names = sorted(f"{plan.group} {plan.version} {plan.sha256}" for plan in plans)
    tried = sorted(f"{attempt.group} {attempt.at.isoformat()}" for attempt in attempts)
    return f"{_digest([*names, '', *again, '', *tried])} {int(now / TRY_AGAIN_S)}"


def _digest(lines: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]
