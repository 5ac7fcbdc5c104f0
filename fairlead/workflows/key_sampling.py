"""From a topic to a report on its keys: sampling by the client or by Spark, and the consumers.

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
from fairlead.domain.record_sample import plan_runs
from fairlead.errors import GroupError, TopicError
from fairlead.kafka.gateway import KafkaGateway
from fairlead.kafka.record_sample import MOST_BYTES, RECORDS, probe, sample_records, window_of
from fairlead.settings import Settings

if TYPE_CHECKING:  # as Spark and the store: for who asks for consumers, or for many records
    from sqlalchemy import Engine

#: Records that the client samples, in a few seconds; Spark samples more.
BY_CLIENT: Final = 1_000_000
#: Maximum number of records in a sample.
MOST_RECORDS: Final = 20_000_000
#: Maximum of `--to`: no topic has as many partitions.
MOST_PARTITIONS: Final = 100_000
#: Number of runs that Spark reads; each is a task.
_SPARK_RUNS: Final = 96


def report_on_keys(
    gateway: KafkaGateway,
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
        The group does not read the topic, or too little is known of it.
    KafkaUnavailableError
        Brokers do not answer in time.
    """
    window = window_of(gateway, topic, minutes * 60)
    count = len(window.spans)
    if partition is not None and partition >= count:
        raise TopicError(f"Topic {topic}: there is no partition {partition}; it has {count:,}")
    if to is not None and to <= count:
        raise TopicError(f"Topic {topic}: it has {count:,} partitions already; --to takes more")
    readers = engine and group and readers_of(engine, settings, group, topic, count)
    if records <= BY_CLIENT:
        sample = sample_records(gateway, window, records, partition)
    else:
        from fairlead.spark import record_sample as by_spark  # noqa: PLC0415 - above

        density, first = probe(gateway, window)
        wanted = min(records, int(MOST_BYTES * 10 / max(first.record_bytes, 1.0)))
        runs = plan_runs(window, wanted / density, _SPARK_RUNS, partition=partition)
        spark = by_spark.source_session(settings.spark, jars())
        sample = by_spark.sample_by_spark(spark, settings.kafka, window, runs, first.record_bytes)
    if not sample.cells.num_rows:
        raise TopicError(
            f"Topic {topic}: the offsets of the last {minutes:g} minutes hold no record"
        )
    shares = KeyShares(sample, readers.seconds if readers else None)
    return key_report(shares, partition=partition, to=to, readers=readers or None)


def readers_of(
    engine: "Engine", settings: Settings, group: str, topic: str, partitions: int
) -> Readers:
    """Return the consumers of a topic, as their group was last seen.

    Raises
    ------
    GroupError
        The group does not read the topic, or what its consumers can take is not known yet.
    """
    from fairlead.store.history_queries import read_lag, read_lag_by_member  # noqa: PLC0415 - above

    rows = [row for row in read_lag(engine, group) if not row["has_left"]]
    mine = {row["partition"]: row for row in rows if row["topic"] == topic}
    members = read_lag_by_member(engine, group)
    capacities = [row["records_per_s"] for row in members if row["records_per_s"]]
    if not mine:
        raise GroupError(f"group {group} does not read {topic}, as it was last seen")
    if not capacities:
        raise GroupError(f"group {group}: what its consumers can take is not known yet")

    def column(name: str, unknown: float) -> Any:
        values = (mine.get(number, {}).get(name) for number in range(partitions))
        return np.array([unknown if each is None else float(each) for each in values])

    seconds = column("seconds_per_record", np.nan)
    others = (row for row in rows if row["topic"] != topic)
    rules = policy_for(group, settings.policies).rules()
    return Readers(
        group=group,
        capacities=np.array(capacities, np.float64),
        costs=column("cost", 1.0),
        seconds=None if np.isnan(seconds).any() else seconds,
        backlog=column("lag", 0.0),
        behind_s=column("time_lag_s", 0.0),
        others=np.array(
            [float(each["arrival_rate"] or 0) * (each["cost"] or 1) for each in others]
        ),
        target=rules.target_utilisation,
        horizon_s=rules.horizon_s,
    )
