"""The last stable offset of partitions whose commit stands still.

Belongs here: which partitions stand still, and asking for their last stable offset. Does not: where
logs begin and end (`offsets`), nor what a stable end means (`fairlead.domain.judgement.looks`).
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from confluent_kafka import OFFSET_END, IsolationLevel, TopicPartition
from confluent_kafka.admin import AdminClient

from fairlead.domain.looks.look import NONE, readable_partitions
from fairlead.domain.snapshot import OFFSETS
from fairlead.kafka.offsets import one_by_one

_KEYS = ["group", "topic", "partition", "committed"]
_COLUMN = "stable_offset"


def with_stable_ends(
    admin: AdminClient, offsets: pa.Table, before: pa.Table, timeout_s: float
) -> pa.Table:
    """Return offsets with the last stable offset of partitions that stand still.

    A partition stands still if its commit is the same as in the sample before and records wait.

    Parameters
    ----------
    offsets
        Of the schema `OFFSETS`.
    before
        The sample before, of the schema `LOOKS`, each group once at most.

    Raises
    ------
    KafkaUnavailableError
        No broker answers in time.
    """
    waiting = _waiting(offsets)
    rows = pa.table(
        {
            **{name: offsets[name].take(waiting) for name in _KEYS[:-1]},
            "committed": pc.fill_null(offsets["committed_offset"].take(waiting), NONE),
            "row": waiting,
        }
    )
    same_groups = before.filter(pc.is_in(before["group"], pc.unique(rows["group"])))
    standing = rows.join(readable_partitions(same_groups), keys=_KEYS, join_type="left semi")
    if not standing.num_rows:
        return offsets
    asked = standing.group_by(["topic", "partition"]).aggregate([("row", "list")]).to_pylist()
    answers = one_by_one(
        admin,
        [TopicPartition(row["topic"], row["partition"]) for row in asked],
        range(len(asked)),
        OFFSET_END,
        timeout_s,
        isolation=IsolationLevel.READ_COMMITTED,
    )
    stable = np.full(offsets.num_rows, NONE, dtype=np.int64)
    for place, answer in answers.values.items():
        stable[asked[place]["row_list"]] = answer.offset  # type: ignore[attr-defined] # the stubs leave it out
    column = pa.array(stable, mask=stable < 0)
    return offsets.set_column(OFFSETS.get_field_index(_COLUMN), OFFSETS.field(_COLUMN), column)


def _waiting(offsets: pa.Table) -> pa.Array:
    """Return the rows of partitions with records behind the commit."""
    position = pc.coalesce(offsets["committed_offset"], offsets["begin_offset"])
    return pc.indices_nonzero(pc.fill_null(pc.less(position, offsets["end_offset"]), False))  # noqa: FBT003 - Arrow's
