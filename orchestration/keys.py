"""The job `keys`: which keys make a partition hot, for people who work in Dagster.

Belongs here: its configuration, and the observation that has its result. Does not: sampling
(`fairlead.workflows.key_sampling`).
"""

from functools import partial

import dagster as dg
from pydantic import Field

from assets.about import about
from assets.presentation import table
from assets.resources import KafkaResource, SettingsResource, StoreResource
from assets.retry_policy import RETRIES, failing_at_once
from fairlead.domain.policy import policy_for
from fairlead.kafka.record_sample import Limits
from fairlead.surfaces.keys import page
from fairlead.surfaces.keys.session import spark_session
from fairlead.workflows.key_sampling import MOST_PARTITIONS, readers_of, report_on_keys


class KeysConfig(dg.Config):
    """Which topic is sampled, and how much of it."""

    topic: str = Field(description="The topic.")
    group: str | None = Field(
        default=None, description="Its consumers: forecast their lag with more partitions."
    )
    partition: int | None = Field(
        default=None, ge=0, description="List the keys of this partition; none: of the topic."
    )
    to: int | None = Field(
        default=None,
        le=MOST_PARTITIONS,
        description="Number of partitions to compare with; none: the smallest that helps.",
    )
    records: int = Field(
        default=Limits.records, ge=1_000, le=20_000_000, description="Records to sample."
    )
    minutes: float = Field(default=60.0, gt=0, description="Length of the window that is sampled.")


@dg.op(retry_policy=RETRIES)
@failing_at_once()
def sample_keys(
    context: dg.OpExecutionContext,
    config: KeysConfig,
    settings: SettingsResource,
    kafka: KafkaResource,
    store: StoreResource,
) -> None:
    """Sample a topic; its heavy keys, hashed, are an observation of the asset `topic_keys/TOPIC`."""
    current = settings.get()
    with kafka.gateway() as gateway, store.connect() as engine:
        policy = policy_for(config.group or "", current.policies)
        report = report_on_keys(
            gateway,
            config.topic,
            Limits(records=config.records),
            minutes=config.minutes,
            partition=config.partition,
            to=config.to,
            readers=config.group
            and partial(readers_of, engine, config.group, config.topic, policy),
            spark=partial(spark_session, current.spark),
        )
    context.log.info("%s", report.verdict)
    metadata = {
        "verdict": report.verdict,
        "keys": table(page.named(page.KEYS, page.key_rows(report, show_keys=False))),
        "partitions": table(page.named(page.SCENARIOS, page.scenario_rows(report))),
        "how": " ".join(page.notes(report)),
    }
    context.log_event(dg.AssetObservation(["topic_keys", config.topic], metadata=metadata))


@dg.job(
    description="Sample a topic: which keys make a partition hot, and what more partitions would "
    "give. Keys are hashed. The result is an observation of the asset topic_keys/TOPIC.",
    **about("nothing"),
)
def keys() -> None:
    """Sample."""
    sample_keys()
