"""The last stable offset of partitions whose commit does not advance.

Belongs here: finding these partitions, and reading their last stable offset. Belongs elsewhere:
begin and end offsets (`offsets`), and conclusions from stable offsets
(`fairlead.domain.analysis.sample_series`).
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from confluent_kafka import OFFSET_END, IsolationLevel, TopicPartition
from confluent_kafka.admin import AdminClient

from fairlead.domain.samples import NONE, by_partition, readable, with_stable_end
from fairlead.kafka.offsets import one_by_one

_KEYS = ["group", "topic", "partition", "committed"]


def with_stable_ends(
    admin: AdminClient, samples: pa.Table, before: pa.Table, timeout_s: float
) -> pa.Table:
    """Add to samples the last stable offset of partitions whose commit does not advance.

    These partitions have records after their commit, but the same commit as in the previous sample.

    Parameters
    ----------
    samples
        Table of the schema `SAMPLES`.
    before
        The previous sample, at most one row per group, with at least the columns `HISTORY`.

    Raises
    ------
    KafkaUnavailableError
        No broker answers in time.
    """
    partitions = by_partition(samples)
    numbers = pa.array(np.arange(partitions.num_rows))
    waiting = _waiting(partitions.append_column("row", numbers))
    groups = pc.unique(waiting["group"])
    earlier = readable(by_partition(before.filter(pc.is_in(before["group"], groups))))
    standing = waiting.join(earlier, keys=_KEYS, join_type="left semi")
    if not standing.num_rows:
        return samples
    rows = standing.group_by(["topic", "partition"]).aggregate([("row", "list")]).to_pylist()
    answers = one_by_one(
        admin,
        [TopicPartition(row["topic"], row["partition"]) for row in rows],
        range(len(rows)),
        OFFSET_END,
        timeout_s,
        isolation=IsolationLevel.READ_COMMITTED,
    )
    stable = np.full(partitions.num_rows, NONE, dtype=np.int64)
    for place, answer in answers.values.items():
        stable[rows[place]["row_list"]] = answer.offset  # type: ignore[attr-defined] # the stubs leave it out
    return with_stable_end(samples, stable)


def _waiting(partitions: pa.Table) -> pa.Table:
    """Return the partitions that have records after their committed offset."""
    begin, committed = partitions["begin"], partitions["committed"]
    position = pc.if_else(pc.less(committed, 0), begin, committed)
    known = pc.greater_equal(begin, 0)
    return partitions.filter(pc.and_(known, pc.less(position, partitions["end"])))
