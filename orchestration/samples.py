"""Looks at the planned groups between planning runs: a sensor, and a job where looking takes long.

Belongs here: who takes a sample when. Does not: what a sample is (`fairlead.domain.samples`).
"""

from collections.abc import Collection
from typing import Final

import dagster as dg

from assets.about import about
from assets.resources import KafkaResource, SettingsResource, SparkResource, StoreResource
from assets.retry_policy import RETRIES, failing_at_once
from fairlead.common.words import listed, plural
from fairlead.store.monitoring import INTERVALS
from fairlead.workflows.sampling import covered_groups, take
from fairlead.workflows.sampling_interval import due, interval, now, sampling_text, wait_s
from orchestration.outages import skip_while_away
from orchestration.runs import PRESUMED_DEAD, under_way
from orchestration.tick_intervals import ask_every_s

#: What takes longer is a run of its own: sensors take turns, and a minute at most.
IN_A_TICK_S: Final = 15.0
#: A tick waits no longer for brokers: the sensors after it wait, too.
PATIENCE_S: Final = 10.0
#: As long as nobody knows what looking takes.
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
    """Look at every group that discovery covers."""
    current = settings.get()
    with kafka.gateway() as gateway, store.open() as plans:
        looked = take(gateway, spark.archive(), current, covered_groups(gateway, current), plans)
    taken = looked.taken
    context.log.info("%s%s", sampling_text(taken, current.sampling), _need_plans(looked.requests))
    if looked.unkept:
        context.log.warning("The sample is analysed, but not kept: %s", looked.unkept)
    context.add_output_metadata(
        {"groups": taken.groups, "partitions": taken.partitions, "took_s": taken.took_s}
    )


@dg.job(
    description="Look at every group once: offsets and owners, without a plan. The sensor "
    "group_samples does so itself, and starts this if it takes long.",
    **about("history"),
)
def sample() -> None:
    """Look."""
    sample_groups()


@dg.sensor(
    job=sample,
    minimum_interval_seconds=ask_every_s(),
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Samples the offsets and owners of all planned groups, as often as sampling.every "
    "and sampling.share say: rates, capacities and diagnoses come from these samples. If that "
    "takes long, it starts the job sample instead.",
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
    current, archive = settings.get(), spark.archive()
    last = archive.taken()
    if not due(last, current.sampling, now()):
        return dg.SkipReason(
            f"The next sample is due in {wait_s(last, current.sampling, now()):.0f} s."
        )
    dead_after = PRESUMED_DEAD
    if last is not None:
        dead_after = min(dead_after, INTERVALS * interval(last, current.sampling))
    if under_way(context.instance, sample.name, dead_after):
        return dg.SkipReason("The sample before is still under way.")
    if last is not None and last.took_s + last.analysed_s > IN_A_TICK_S:
        return dg.RunRequest()
    with kafka.gateway(at_most_s=PATIENCE_S) as gateway, store.open() as plans:
        groups = covered_groups(gateway, current)
        if last is None and len(groups) > GROUPS_IN_A_TICK:
            return dg.RunRequest()
        looked = take(gateway, archive, current, groups, plans)
    unkept = f". It is analysed, but not kept: {looked.unkept}" if looked.unkept else ""
    what = f"{sampling_text(looked.taken, current.sampling)}{_need_plans(looked.requests)}"
    return dg.SkipReason(f"{what}{unkept}.")


def _need_plans(requests: Collection[str]) -> str:
    """Say which groups a sample found in need of a plan."""
    if not requests:
        return ""
    need = "needs" if len(requests) == 1 else "need"
    return f"; {plural(len(requests), 'group')} {need} a plan: {listed(sorted(requests))}"
