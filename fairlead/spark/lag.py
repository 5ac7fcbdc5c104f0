"""Lag of every partition of a snapshot, computed in Spark from looks.

Belongs here: dealing groups out, reading their looks, the columns. Does not: what lag, rates and
status are (`fairlead.looks.lag`), nor planning (`candidates`).
"""

from collections.abc import Collection, Iterator, Sequence
from datetime import timedelta
from functools import partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from fairlead.looks.archive import HISTORY, LookArchive
from fairlead.looks.arrays import looks_of
from fairlead.looks.lag import STATUSES, partition_lag
from fairlead.spark.dealing import Place, deal_snapshot, in_tasks, no_rows
from fairlead.spark.warehouse import Warehouse
from fairlead.tables import named, slices

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
        "member": pa.string(),
        "arrival_rate": pa.float64(),
        "consumption_rate": pa.float64(),
        "time_lag_s": pa.float64(),
        "status": pa.string(),
    }
)
"""One row a partition that could be read: lag in records, rates in records a second.

`member` is null where nobody owns the partition, where nobody knows, and where claims contradict
each other; a rate and `time_lag_s` are where looks cannot tell.
"""

#: Rates and statuses look back so far, and at so many looks before it where there are fewer within.
LOOKED_BACK: Final = timedelta(hours=1)
LEAST: Final = 2
#: Groups whose rows are handed on at once.
_AT_ONCE: Final = 200


def snapshot_lag(
    spark: SparkSession, warehouse: Warehouse, snapshot_id: str, latest: Collection[str] = ()
) -> DataFrame:
    """Measure every partition of a snapshot.

    Parameters
    ----------
    warehouse
        Holds the snapshot and, in the archive beside it, the looks before it; there may be none.
    latest
        The groups whose consumers start at the log's end without a commit (`auto.offset.reset`).

    Returns
    -------
    DataFrame
        Of the schema `LAG`.

    Notes
    -----
    Looked back on are the looks of the last hour, or where a group's looks or planning runs are
    further apart than that, the last two of the day.
    """
    place = Place.of(warehouse, snapshot_id)
    if place is None:
        return no_rows(spark, LAG)
    tasks: dict[int, list[str]] = {}
    for group, task in deal_snapshot(spark, warehouse, snapshot_id).items():
        tasks.setdefault(task, []).append(group)
    work = partial(_measure, place, tasks, frozenset(latest))
    return in_tasks(spark, len(tasks), work, LAG)


def _measure(
    place: Place, tasks: dict[int, list[str]], latest: Collection[str], task: int
) -> Iterator[pa.RecordBatch]:
    """Measure the groups of one task."""
    names = tasks[task]
    looks = _looks(place, names)
    for start in range(0, len(names), _AT_ONCE):
        some = [
            _rows(place, name, looks[name], latest=name in latest)
            for name in names[start : start + _AT_ONCE]
            if name in looks
        ]
        yield from pa.concat_tables([LAG.empty_table(), *some]).combine_chunks().to_batches()


def _looks(place: Place, names: Sequence[str]) -> dict[str, pa.Table]:
    """Read each group's looks, the snapshot the last of them."""
    warehouse, archive = Warehouse(place.warehouse), LookArchive(place.warehouse)
    span = min(names), max(names)
    filters = [("group", ">=", span[0]), ("group", "<=", span[1])]
    now = _of(names, warehouse.load("look", place.snapshot_id, filters))
    recent = archive.read(place.snapshot_at - LOOKED_BACK, place.snapshot_at, span)
    found = slices(pa.concat_tables([_of(names, recent), now]), "group")
    # The snapshot may be among the looks as well.
    few = [name for name, rows in found.items() if pc.count_distinct(rows["at"]).as_py() <= LEAST]
    if few:
        day = archive.read(place.snapshot_at - HISTORY, place.snapshot_at, (min(few), max(few)))
        found |= slices(pa.concat_tables([_of(few, day), _of(few, now)]), "group")
    return found


def _of(names: Sequence[str], looks: pa.Table) -> pa.Table:
    return looks.filter(pc.is_in(looks["group"], pa.array(names, pa.string())))


def _rows(place: Place, group: str, rows: pa.Table, *, latest: bool) -> pa.Table:
    """Measure a group; of the schema `LAG`."""
    newest = rows.slice(rows.num_rows - 1).to_pylist()[0]
    topics, counts = newest["topics"], newest["counts"]
    looks = looks_of(rows, topics, counts, newest["members"], latest=latest)
    looks = looks.last(LOOKED_BACK.total_seconds(), LEAST + 1)
    measured = partition_lag(looks)
    known = np.flatnonzero(measured.readable)
    topic_of = np.repeat(np.arange(len(topics)), counts)
    number = np.concatenate([np.arange(count) for count in counts] or [np.empty(0, np.int64)])

    def unless(missing: npt.NDArray[np.bool_], values: npt.NDArray[Any]) -> pa.Array:
        return pa.array(values[known], mask=missing[known])

    taken_at = pa.scalar(place.snapshot_at, LAG.field("snapshot_at").type)
    columns = {
        "snapshot_id": pa.repeat(place.snapshot_id, known.size),
        "snapshot_at": pa.repeat(taken_at, known.size),
        "group": pa.repeat(group, known.size),
        "topic": named(topic_of[known], topics),
        "partition": pa.array(number[known].astype(np.int32)),
        "begin_offset": pa.array(looks.begin[-1][known]),
        "end_offset": pa.array(looks.end[-1][known]),
        "committed_offset": unless(looks.committed[-1] < 0, looks.committed[-1]),
        "lag": pa.array(measured.lag[known]),
        "member": named(looks.owner[-1][known], looks.members),
        **{
            name: unless(np.isnan(values), values)
            for name, values in {
                "arrival_rate": measured.arrival_rate,
                "consumption_rate": measured.consumption_rate,
                "time_lag_s": measured.time_lag_s,
            }.items()
        },
        "status": named(measured.status[known], STATUSES),
    }
    return pa.table(columns, schema=LAG)
