"""The Dagster job `keys`, which reports the keys of a hot partition.

Belongs here: its configuration, and the observation that has its result. Does not: sampling
(`fairlead.workflows.key_sampling`).
"""

import dagster as dg
from pydantic import Field

from assets.about import about
from assets.presentation import table
from assets.resources import SettingsResource, StoreResource
from assets.retry_policy import RETRIES, failing_at_once
from fairlead.kafka.record_sample import RECORDS
from fairlead.surfaces.keys import tables
from fairlead.workflows.key_sampling import MOST_PARTITIONS, MOST_RECORDS, report_on_keys


class KeysConfig(dg.Config):
    """The options of `fairlead keys`."""

    topic: str
    group: str | None = None
    partition: int | None = Field(default=None, ge=0)
    to: int | None = Field(default=None, le=MOST_PARTITIONS)
    records: int = Field(default=RECORDS, ge=1_000, le=MOST_RECORDS)
    minutes: float = Field(default=60.0, gt=0)


@dg.op(retry_policy=RETRIES)
@failing_at_once()
def sample_keys(
    context: dg.OpExecutionContext,
    config: KeysConfig,
    settings: SettingsResource,
    store: StoreResource,
) -> None:
    """Sample a topic; the result is an observation of the asset `topic_keys/TOPIC`."""
    from fairlead.sandbox.jars import source_jars  # noqa: PLC0415 - imports PySpark

    with store.connect() as engine:
        report = report_on_keys(
            settings.get(), engine=engine, jars=source_jars, **config.model_dump()
        )
    keys, partitions = map(table, tables(report))
    metadata = {
        "verdict": report["verdict"],
        "keys": keys,
        "partitions": partitions,
        "how": " ".join(report["notes"]),
    }
    context.log_event(dg.AssetObservation(["topic_keys", config.topic], metadata=metadata))


@dg.job(
    description="Sample a topic: which keys make a partition hot, and what more partitions would "
    "give. The result, with hashed keys, is an observation of the asset topic_keys/TOPIC.",
    **about("nothing"),
)
def keys() -> None:
    """Sample."""
    sample_keys()
