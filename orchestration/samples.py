"""Samples of the planned groups between planning runs: a sensor, and a job if sampling is slow.

Belongs here: whether the sensor or the job takes a sample. Belongs elsewhere: samples themselves
(`fairlead.domain.samples`).
"""

from collections.abc import Collection
from datetime import UTC, datetime
from typing import Final

import dagster as dg

from assets.about import about
from assets.resources import KafkaResource, SettingsResource, SparkResource, StoreResource
from assets.retry_policy import RETRIES, failing_at_once
from fairlead.common.words import listed, plural
from fairlead.store.monitoring import INTERVALS
from fairlead.workflows.sampling import covered_groups, take
from fairlead.workflows.sampling_interval import describe_cost, due, interval, wait_s
from orchestration.outages import skip_while_away
from orchestration.runs import PRESUMED_DEAD, under_way
from orchestration.tick_intervals import at_loading, ticks_of

#: Seconds. If the last sample took longer, the sensor starts a job that takes the next sample,
#: because a sensor's tick (one call of the sensor) may take only a minute, and other sensors may
#: have to wait meanwhile.
IN_A_TICK_S: Final = 15.0
#: Seconds. Longest wait for a broker. Meanwhile, other sensors may have to wait, too.
PATIENCE_S: Final = 10.0
#: Number of groups. If there are more, the sensor starts the job even for the first sample, when
#: the time that a sample takes is not known yet.
GROUPS_IN_A_TICK: Final = 500


@dg.op(retry_policy=RETRIES)
@failing_at_once()
def sample_groups(
    context: dg.OpExecutionContext,
    settings: SettingsResource,
    kafka: KafkaResource,
    spark: SparkResource,
    store: StoreResource,
) -> None:
    """Sample every group that the setting `discovery` covers."""
    current = settings.get()
    with kafka.gateway() as gateway, store.open() as plans:
        sampled = take(gateway, spark.archive(), current, covered_groups(gateway, current), plans)
    taken = sampled.taken
    context.log.info("%s%s", describe_cost(taken, current.sampling), _need_plans(sampled.requests))
    if sampled.unkept:
        context.log.warning("The sample is analysed, but not stored: %s", sampled.unkept)
    context.add_output_metadata(
        {"groups": taken.groups, "partitions": taken.partitions, "took_s": taken.took_s}
    )


@dg.job(
    description="Sample the offsets and owners of every group once, without planning. The sensor "
    "group_samples does this automatically, and starts this job if a sample takes long.",
    **about("history"),
)
def sample() -> None:
    """Take a sample."""
    sample_groups()


@dg.sensor(
    job=sample,
    minimum_interval_seconds=ticks_of(at_loading()[1]),
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Samples the offsets and owners of all planned groups, as often as sampling.every "
    "and sampling.share allow: rates, capacities and diagnoses come from these samples. If "
    "sampling takes too long for a sensor, the job `sample` does it instead.",
    **about("history"),
)
@skip_while_away
def group_samples(
    context: dg.SensorEvaluationContext,
    settings: SettingsResource,
    kafka: KafkaResource,
    spark: SparkResource,
    store: StoreResource,
) -> dg.RunRequest | dg.SkipReason:
    """Take a sample if one is due."""
    current, archive, now = settings.get(), spark.archive(), datetime.now(UTC)
    last = archive.taken()
    if not due(last, current.sampling, now):
        return dg.SkipReason(
            f"The next sample is due in {wait_s(last, current.sampling, now):.0f} s."
        )
    dead_after = PRESUMED_DEAD
    if last is not None:
        dead_after = min(dead_after, INTERVALS * interval(last, current.sampling))
    if under_way(context.instance, sample.name, dead_after):
        return dg.SkipReason("The previous sample is still under way.")
    if last is not None and last.took_s + last.analysed_s > IN_A_TICK_S:
        return dg.RunRequest()
    with kafka.gateway(at_most_s=PATIENCE_S) as gateway, store.open() as plans:
        groups = covered_groups(gateway, current)
        if last is None and len(groups) > GROUPS_IN_A_TICK:
            return dg.RunRequest()
        sampled = take(gateway, archive, current, groups, plans)
    unkept = f". It is analysed, but not stored: {sampled.unkept}" if sampled.unkept else ""
    cost = describe_cost(sampled.taken, current.sampling)
    return dg.SkipReason(f"{cost}{_need_plans(sampled.requests)}{unkept}.")


def _need_plans(requests: Collection[str]) -> str:
    """Return which groups need a plan, as the end of a sentence; "" if none does."""
    if not requests:
        return ""
    need = "needs" if len(requests) == 1 else "need"
    return f"; {plural(len(requests), 'group')} {need} a plan: {listed(sorted(requests))}"
