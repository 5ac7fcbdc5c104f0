"""From a topic to a report on its keys: sampling by the client or by Spark, and the consumers.

Belongs here: which of the two reads, and what is taken from the store. Does not: the report
(`fairlead.domain.key_report`).
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from sqlalchemy import Engine

from fairlead.domain.key_report import KeyReport, Readers, key_report
from fairlead.domain.key_shares import KeyShares
from fairlead.domain.policy import Policy
from fairlead.domain.record_sample import RecordSample, plan_runs
from fairlead.errors import GroupError, TopicError
from fairlead.kafka.gateway import KafkaGateway
from fairlead.kafka.record_sample import Limits, probe, sample_records, window_of
from fairlead.store.history_queries import read_lag, read_lag_by_member

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Records that the client samples, in a few seconds; Spark samples more.
BY_CLIENT: Final = 1_000_000
#: Runs that Spark reads, a task each.
_SPARK_RUNS: Final = 96
#: More partitions than any topic has.
MOST_PARTITIONS: Final = 100_000


def report_on_keys(
    gateway: KafkaGateway,
    topic: str,
    limits: Limits,
    *,
    minutes: float,
    partition: int | None = None,
    to: int | None = None,
    readers: Callable[[int], Readers] | None = None,
    spark: "Callable[[], SparkSession]",
) -> KeyReport:
    """Sample a topic and report on its keys.

    Parameters
    ----------
    minutes
        Length of the window.
    partition, to
        As for `key_report`.
    readers
        Returns the consumers of a topic with so many partitions; None: no group was named.
    spark
        Returns a session with Spark's Kafka source, for more records than `BY_CLIENT`.

    Raises
    ------
    TopicError
        The topic cannot be sampled, or has no such partition.
    GroupError
        The group does not read the topic.
    KafkaUnavailableError
        Brokers do not answer in time.
    """
    window = window_of(gateway, topic, minutes * 60)
    count = len(window.spans)
    if partition is not None and partition >= count:
        raise TopicError(f"Topic {topic}: there is no partition {partition}; it has {count:,}")
    if to is not None and to <= count:
        raise TopicError(f"Topic {topic}: it has {count:,} partitions; --to takes more")
    of_group = readers and readers(count)
    sample: RecordSample
    if limits.records <= BY_CLIENT:
        sample = sample_records(gateway, window, limits, partition)
    else:
        from fairlead.spark.record_sample import sample_by_spark  # noqa: PLC0415 - seconds

        density, _, size, _ = probe(gateway, window, limits)
        records = min(limits.records, limits.bytes / max(size, 1.0))
        runs = plan_runs(window, records / density, _SPARK_RUNS, partition=partition)
        sample = sample_by_spark(
            spark(), gateway.settings, window, runs, seconds=limits.seconds, record_bytes=size
        )
    if not sample.cells.num_rows:
        raise TopicError(f"Topic {topic}: no record was read within {limits.seconds:g} s")
    shares = KeyShares(sample, of_group and of_group.seconds)
    return key_report(shares, partition=partition, to=to, readers=of_group)


def readers_of(engine: Engine, group: str, topic: str, policy: Policy, partitions: int) -> Readers:
    """Return the consumers of a topic, as the group was last seen.

    Raises
    ------
    GroupError
        Nothing is known of the group, or it does not read the topic, or what its consumers can take
        is not known yet.
    """
    rows = [row for row in read_lag(engine, group) if not row["has_left"]]
    mine = {row["partition"]: row for row in rows if row["topic"] == topic}
    capacities = [row["records_per_s"] for row in read_lag_by_member(engine, group)]
    capacities = [each for each in capacities if each]
    if not mine:
        raise GroupError(f"group {group} does not read {topic}, as it was last seen")
    if not capacities:
        raise GroupError(
            f"group {group}: what its consumers can take is not known yet. Leave out --group"
        )
    rules = policy.rules()

    def column(name: str, default: float) -> Any:
        values = [mine.get(number, {}).get(name) for number in range(partitions)]
        return np.array([default if each is None else float(each) for each in values])

    seconds = column("seconds_per_record", np.nan)
    return Readers(
        group=group,
        capacities=np.array(capacities, dtype=np.float64),
        costs=column("cost", 1.0),
        seconds=None if np.isnan(seconds).any() else seconds,
        backlog=column("lag", 0.0),
        behind_s=column("time_lag_s", 0.0),
        others=np.array(
            [
                float(row["arrival_rate"] or 0) * float(row["cost"] or 1)
                for row in rows
                if row["topic"] != topic
            ]
        ),
        target=rules.headroom,
        horizon_s=rules.horizon_s,
        objective_s=rules.objective_s,
    )
