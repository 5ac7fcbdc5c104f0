"""Lag of every partition of a snapshot, computed in Spark from looks.

Belongs here: dealing groups out, reading their looks, the columns. Does not: what lag, rates and
status are (`fairlead.domain.looks.lag`), nor planning (`candidates`).
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from fairlead.archive import LookArchive
from fairlead.common.tables import named, slices
from fairlead.domain.looks import HISTORY
from fairlead.domain.looks.arrays import MICROSECONDS
from fairlead.domain.looks.lag import LEAST, LOOKED_BACK, STATUSES, left_topics, partition_lag
from fairlead.domain.looks.look import partition_places
from fairlead.domain.looks.stacks import Stack, stacks
from fairlead.spark.dealing import deal_snapshot, in_tasks
from fairlead.spark.warehouse import Place, Warehouse

LAG: Final = pa.schema(
    {
        "snapshot_id": pa.string(),
        "snapshot_at": pa.timestamp("us", tz="UTC"),
        "group": pa.string(),
        "topic": pa.string(),
        "partition": pa.int32(),
        "begin_offset": pa.int64(),
        "end_offset": pa.int64(),
        "committed_offset": pa.int64(),
        "lag": pa.int64(),
        "lost": pa.int64(),
        "lost_at": pa.timestamp("us", tz="UTC"),
        "member": pa.string(),
        "arrival_rate": pa.float64(),
        "consumption_rate": pa.float64(),
        "time_lag_s": pa.float64(),
        "status": pa.string(),
    }
)
"""One row a partition that could be read: lag in records, rates in records a second.

`member` is null where nobody owns the partition, where nobody knows, and where claims contradict
each other; a rate and `time_lag_s` are where looks cannot tell; `lost_at` is if `lost` is 0, and
`status` if the group has left the topic.
"""

#: Rows handed on at once.
_AT_ONCE: Final = 50_000


def write_lag(
    spark: SparkSession, warehouse: Warehouse, snapshot_id: str, latest: Collection[str] = ()
) -> None:
    """Measure every partition of a snapshot: its table `lag`, of the schema `LAG`.

    Parameters
    ----------
    warehouse
        Holds the snapshot and, in the archive beside it, the looks before it; there may be none.
    latest
        The groups whose consumers start at the log's end without a commit (`auto.offset.reset`).

    Notes
    -----
    Looked back on are the looks of the last hour, or where a group's looks or planning runs are
    further apart than that, the last two of the day.
    """
    place = warehouse.place_of(snapshot_id)
    if place is None:
        warehouse.write("lag", snapshot_id, LAG.empty_table())
        return
    tasks: dict[int, list[str]] = {}
    for group, task in deal_snapshot(spark, place).items():
        tasks.setdefault(task, []).append(group)
    work = partial(_measure, place, tasks, frozenset(latest))
    with warehouse.in_parts("lag", snapshot_id, LAG) as parts:
        in_tasks(spark, len(tasks), work, parts)


def _measure(
    place: Place, tasks: dict[int, list[str]], latest: Collection[str], task: int
) -> Iterator[pa.RecordBatch]:
    """Measure the groups of one task."""
    read = _read_topics(place, tasks[task])
    for stack in stacks(_looks(place, tasks[task]), latest):
        yield from lag_of(place, stack, read).to_batches(max_chunksize=_AT_ONCE)


def _read_topics(place: Place, names: Sequence[str]) -> dict[str, list[list[str]]]:
    """Return group to the topics of each of its members, of groups that have members."""
    span = [("group", ">=", min(names)), ("group", "<=", max(names))]
    members = Warehouse(place.warehouse).load("members", place.snapshot_id, span)
    members = members.filter(pc.is_in(members["group"], pa.array(names, pa.string())))
    return {
        name: pc.drop_null(rows["topics"]).to_pylist()
        for name, rows in slices(members, "group").items()
    }


def _looks(place: Place, names: Sequence[str]) -> dict[str, pa.Table]:
    """Read each group's looks, the snapshot the last of them."""
    archive = LookArchive(place.warehouse)
    recent = archive.read(place.snapshot_at - LOOKED_BACK, place.snapshot_at, names)
    found = slices(recent, "group")
    few = [name for name, rows in found.items() if rows.num_rows <= LEAST]
    if few:
        day = archive.read(place.snapshot_at - HISTORY, place.snapshot_at, few)
        found |= slices(day, "group")
    return found


def lag_of(place: Place, stack: Stack, read: Mapping[str, list[list[str]]]) -> pa.Table:
    """Measure the groups of a stack, on the driver or on an executor.

    Parameters
    ----------
    place
        The snapshot; nothing is read from its warehouse.
    read
        Group to the topics of each of its members.

    Returns
    -------
    A table of the schema `LAG`.
    """
    looks = stack.looks.last(LOOKED_BACK.total_seconds(), LEAST + 1)
    group_of = stack.group_of
    measured = partition_lag(looks, group_of)
    known = np.flatnonzero(measured.readable)
    newest = stack.newest.combine_chunks()
    topic_of, number = partition_places(newest)
    members = pc.list_value_length(newest["members"]).to_numpy().astype(np.int64)
    owner = _flat(newest["owner"]).to_numpy().astype(np.int64)
    member = np.where(owner < 0, -1, owner + (np.cumsum(members) - members)[group_of])
    left = np.array(_left(newest, read), np.bool_)[topic_of]
    taken_at = pa.scalar(place.snapshot_at, LAG.field("snapshot_at").type)

    def unless(missing: npt.NDArray[np.bool_], values: npt.NDArray[Any]) -> pa.Array:
        return pa.array(values[known], mask=missing[known])

    columns = {
        "snapshot_id": pa.repeat(place.snapshot_id, known.size),
        "snapshot_at": pa.repeat(taken_at, known.size),
        "group": newest["group"].take(pa.array(group_of[known])),
        "topic": _flat(newest["topics"]).take(pa.array(topic_of[known])),
        "partition": pa.array(number[known].astype(np.int32)),
        "begin_offset": pa.array(looks.begin[-1][known]),
        "end_offset": pa.array(looks.end[-1][known]),
        "committed_offset": unless(looks.committed[-1] < 0, looks.committed[-1]),
        "lag": pa.array(measured.lag[known]),
        "lost": pa.array(measured.lost[known]),
        "lost_at": unless(measured.lost == 0, _moments(measured.lost_at)),
        "member": _flat(newest["members"]).take(unless(member < 0, member)),
        **{
            name: unless(np.isnan(values), values)
            for name, values in {
                "arrival_rate": measured.arrival_rate,
                "consumption_rate": measured.consumption_rate,
                "time_lag_s": measured.time_lag_s,
            }.items()
        },
        "status": named(np.where(left, -1, measured.status)[known], STATUSES),
    }
    return pa.table(columns, schema=LAG)


def _left(newest: pa.Table, read: Mapping[str, list[list[str]]]) -> list[bool]:
    """Return whether a group has left each of its topics, of all groups' topics in order."""
    groups = newest.select(["group", "topics"]).to_pylist()
    return [
        topic in left
        for row in groups
        for left in [left_topics(row["topics"], read.get(row["group"], []))]
        for topic in row["topics"]
    ]


def _moments(seconds: npt.NDArray[np.float64]) -> npt.NDArray[np.datetime64]:
    """Return moments as Arrow takes them; the epoch for those that are not known."""
    return np.rint(np.nan_to_num(seconds) * MICROSECONDS).astype("datetime64[us]")


def _flat(lists: pa.ChunkedArray) -> pa.Array:
    return lists.combine_chunks().flatten()
