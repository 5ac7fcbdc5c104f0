"""Report on a topic's keys: sampling by the client or by Spark, and reading the consumers.

Belongs here: the choice between the two, and reading consumers from the store. Does not: the report
(`fairlead.domain.key_report`).
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from fairlead.domain.key_report import Readers, key_report
from fairlead.domain.key_shares import KeyShares
from fairlead.domain.policy import policy_for
from fairlead.domain.record_sample import Float64, plan_runs
from fairlead.errors import GroupError, TopicError
from fairlead.kafka.record_sample import RECORDS, open_log
from fairlead.settings import Settings

if TYPE_CHECKING:  # Spark and the store are imported only if they are needed
    from sqlalchemy import Engine

#: Largest accepted numbers of records to sample, and of partitions to compare with.
MOST_RECORDS: Final = 20_000_000
MOST_PARTITIONS: Final = 100_000
#: Number of records that the client samples, in a few seconds; Spark samples more.
BY_CLIENT: Final = 1_000_000
#: Maximum bytes that Spark reads, and the number of runs of records, each read by one task.
_SPARK_BYTES: Final = 1_000_000_000
_SPARK_RUNS: Final = 96
#: Size of the sample from which Spark's bytes are estimated.
_PROBE: Final = 1_000


def report_on_keys(
    settings: Settings,
    topic: str,
    engine: "Engine | None" = None,
    *,
    jars: Callable[[], Sequence[Path]],
    group: str | None = None,
    partition: int | None = None,
    to: int | None = None,
    records: int = RECORDS,
    minutes: float = 60.0,
    show_keys: bool = False,
) -> dict[str, Any]:
    """Sample the last minutes of a topic and report on its keys, as `key_report` does.

    Parameters
    ----------
    engine, group
        Fairlead's database, and the group whose consumers are forecast; None: no forecast.
    jars
        Returns the jars of Spark's Kafka source; called for more records than `BY_CLIENT`.

    Raises
    ------
    TopicError
        The topic cannot be sampled, or has no such partition.
    GroupError
        The group does not read the topic, or too little is known about it.
    KafkaUnavailableError
        Brokers do not answer in time.
    """
    with open_log(settings.kafka, topic) as log:
        window = log.window(minutes * 60)
        count = len(window.spans)
        if partition is not None and partition >= count:
            raise TopicError(f"Topic {topic}: there is no partition {partition}; it has {count:,}")
        if to is not None and to <= count:
            raise TopicError(f"Topic {topic}: it has {count:,} partitions already; set --to higher")
        readers = engine and group and readers_of(engine, settings, group, topic, count)
        if records <= BY_CLIENT:
            sample = log.sample(window, records)
        else:
            from fairlead.spark.record_sample import sample_by_spark  # noqa: PLC0415 - above

            probe = log.sample(window, _PROBE)
            records = min(records, int(_SPARK_BYTES / max(probe.record_bytes, 1.0)))
            runs = plan_runs(window, records, _SPARK_RUNS)
            sample = sample_by_spark(settings, jars(), window, runs, probe.record_bytes)
    if not sample.cells.num_rows:
        raise TopicError(
            f"Topic {topic}: the offsets of the last {minutes:g} minutes have no records"
        )
    shares = KeyShares(sample, readers.seconds if readers else None)
    return key_report(
        shares, partition=partition, to=to, readers=readers or None, show_keys=show_keys
    )


def readers_of(
    engine: "Engine", settings: Settings, group: str, topic: str, partitions: int
) -> Readers:
    """Return the consumers of a topic, as in the last sample of their group.

    Raises
    ------
    GroupError
        The group does not read all of the topic, or its consumers' capacity is unknown.
    """
    from fairlead.store.lag_queries import read_lag, read_lag_by_member  # noqa: PLC0415 - above

    rows = [row for row in read_lag(engine, group) if not row["has_left"]]
    rows.sort(key=lambda row: (row["topic"] != topic, row["topic"], row["partition"]))
    if [row["topic"] for row in rows].count(topic) != partitions:
        raise GroupError(f"Group {group}: it was not reading all of {topic} in its last sample")
    members = read_lag_by_member(engine, group)
    capacities = np.array([row["records_per_s"] or 0 for row in members], np.float64)
    if not capacities.any():
        raise GroupError(f"Group {group}: the capacity of its consumers is not known yet")

    def column(name: str, unknown: float) -> Float64:
        return np.nan_to_num(np.array([row[name] for row in rows], np.float64), nan=unknown)

    costs, seconds = column("cost", 1.0), column("seconds_per_record", -1.0)[:partitions]
    rules = policy_for(group, settings.policies).rules()
    return Readers(
        capacities=capacities[capacities > 0],
        costs=costs[:partitions],
        seconds=seconds if seconds.min() >= 0 else None,
        arrivals=column("arrival_rate", 0.0) * costs,
        backlog=column("lag", 0.0) * costs,
        behind_s=column("time_lag_s", 0.0),
        target=rules.target_utilisation,
        horizon_s=rules.horizon_s,
    )
