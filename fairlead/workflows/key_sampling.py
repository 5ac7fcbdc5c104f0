"""Sample the keys of a topic's records, and report which keys make partitions hot.

Belongs here: the order of steps, and reading a group's consumers from the store. Belongs elsewhere:
reading records (`fairlead.kafka.record_sample`), and the report (`fairlead.domain.key_report`).
"""

from typing import TYPE_CHECKING, Any

import numpy as np

from fairlead.domain.key_report import Readers, key_report
from fairlead.domain.key_shares import KeyShares
from fairlead.domain.policy import policy_for
from fairlead.domain.record_sample import Float64
from fairlead.errors import GroupError, TopicError
from fairlead.kafka.record_sample import RECORDS, open_log
from fairlead.settings import Settings

if TYPE_CHECKING:  # without a group, the store is not needed, so importing it would waste time
    from sqlalchemy import Engine


def report_on_keys(
    settings: Settings,
    topic: str,
    engine: "Engine | None" = None,
    *,
    group: str | None = None,
    partition: int | None = None,
    to: int | None = None,
    records: int = RECORDS,
    minutes: float = 60.0,
    show_keys: bool = False,
) -> dict[str, Any]:
    """Sample the last minutes of a topic, and return the `key_report` on its keys.

    Parameters
    ----------
    engine, group
        Fairlead's database, and the group whose lag is forecast if the topic gets more partitions.
        If either is None, the report has no forecast.

    Raises
    ------
    TopicError
        The topic cannot be sampled, has no partition `partition`, or has at least `to` partitions
        already.
    GroupError
        The group does not read the whole topic, or its consumers' capacity is unknown.
    KafkaUnavailableError
        Brokers do not answer in time.
    """
    with open_log(settings.kafka, topic) as log:
        window = log.window(minutes * 60)
        count = len(window.spans)
        if partition is not None and partition >= count:
            raise TopicError(f"Topic {topic}: there is no partition {partition}; it has {count:,}")
        if to is not None and to <= count:
            raise TopicError(f"Topic {topic}: it has {count:,} partitions already; raise --to")
        readers = engine and group and readers_of(engine, settings, group, topic, count)
        sample = log.sample(window, records)
    if not sample.cells.num_rows:
        raise TopicError(
            f"Topic {topic}: its offsets advanced in the last {minutes:g} minutes, but there are "
            "no records at them, for example because compaction removed the records"
        )
    shares = KeyShares(sample, readers.seconds if readers else None)
    return key_report(
        shares, partition=partition, to=to, readers=readers or None, show_keys=show_keys
    )


def readers_of(
    engine: "Engine", settings: Settings, group: str, topic: str, partitions: int
) -> Readers:
    """Return the capacities of a group's consumers and the work of a topic's partitions.

    Raises
    ------
    GroupError
        In its last sample, the group did not read the whole topic, or its consumers' capacity is
        unknown.
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
