"""Lag of every partition of a snapshot, computed in Spark from samples.

Belongs here: the columns of the table, and computing them in tasks. Belongs elsewhere: the
definitions of lag, rates and status (`fairlead.domain.samples.lag`), and planning (`candidates`).
"""

from collections.abc import Collection, Iterator, Mapping
from functools import partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import SparkSession

from fairlead.common.tables import named
from fairlead.domain.history import HISTORY
from fairlead.domain.samples import by_partition
from fairlead.domain.samples.arrays import MICROSECONDS, all_topics
from fairlead.domain.samples.lag import (
    LAG_HISTORY,
    LAG_SAMPLES,
    STATUSES,
    left_topics,
    partition_lag,
)
from fairlead.spark.dealing import deal_snapshot, in_tasks, samples_until
from fairlead.spark.warehouse import Warehouse

#: One row per partition that could be read: lag in records, rates in records per second.
#:
#: Null values: `member` if there is no owner or the owner is unknown; rates and `time_lag_s` if
#: samples do not show them; `lost_at` if `lost` is 0; `status` if the group has left the topic.
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

#: Number of rows in a batch.
_AT_ONCE: Final = 50_000


def write_lag(
    spark: SparkSession,
    warehouse: Warehouse,
    snapshot_id: str,
    latest: Collection[str] = (),
) -> None:
    """Compute the lag of every partition of a snapshot; write its table `lag`, of the schema `LAG`.

    Parameters
    ----------
    warehouse
        The warehouse with the snapshot; the archive in it may have earlier samples.
    latest
        Groups whose consumers start at the log's end if there is no commit (`auto.offset.reset`).

    Notes
    -----
    Uses the samples of the last hour or, if there are fewer than three, the newest three of the
    last day.
    """
    tasks: dict[int, list[str]] = {}
    for group, task in deal_snapshot(spark, warehouse, snapshot_id).items():
        tasks.setdefault(task, []).append(group)
    measure = partial(_measure, warehouse.path, snapshot_id, tasks, frozenset(latest))
    with warehouse.in_parts("lag", snapshot_id, LAG) as parts:
        in_tasks(spark, len(tasks), measure, parts)


def _measure(
    path: str, snapshot_id: str, tasks: dict[int, list[str]], latest: Collection[str], task: int
) -> Iterator[pa.RecordBatch]:
    """Compute the lag of the groups of one task."""
    read = partial(samples_until, path, snapshot_id)
    samples = read(LAG_HISTORY, tasks[task])
    few = [name for name, rows in samples.items() if rows.num_rows <= LAG_SAMPLES]
    yield from lag_of(samples | read(HISTORY, few), latest).to_batches(max_chunksize=_AT_ONCE)


def lag_of(samples: Mapping[str, pa.Table], latest: Collection[str] = ()) -> pa.Table:
    """Compute the lag of each partition of some groups.

    Parameters
    ----------
    samples
        Maps each group to its samples, oldest first; the last sample is the snapshot.
    latest
        Groups whose consumers start at the log's end if there is no commit (`auto.offset.reset`).

    Returns
    -------
    A table of the schema `LAG`.
    """
    measured = [_measured(rows, latest=name in latest) for name, rows in samples.items()]
    return pa.concat_tables([LAG.empty_table(), *measured])


def _measured(samples: pa.Table, *, latest: bool) -> pa.Table:
    """Compute the lag of the partitions of one group."""
    series = all_topics(samples, latest=latest).last(LAG_HISTORY.total_seconds(), LAG_SAMPLES + 1)
    measured, newest = partition_lag(series), samples.slice(samples.num_rows - 1)
    known = pa.array(np.flatnonzero(measured.readable))
    partitions = by_partition(newest)

    def unless(missing: npt.NDArray[np.bool_], values: npt.NDArray[Any]) -> pa.Array:
        return pa.array(values, mask=missing)

    columns = {
        "snapshot_id": pa.repeat(newest["sample_id"][0], series.partitions),
        "snapshot_at": pa.repeat(newest["at"][0], series.partitions),
        **{name: partitions[name] for name in ("group", "topic", "partition", "member")},
        "begin_offset": partitions["begin"],
        "end_offset": partitions["end"],
        "committed_offset": unless(series.committed[-1] < 0, series.committed[-1]),
        "lag": pa.array(measured.lag),
        "lost": pa.array(measured.lost),
        "lost_at": unless(measured.lost == 0, _moments(measured.lost_at)),
        **{
            name: unless(np.isnan(values), values)
            for name, values in {
                "arrival_rate": measured.arrival_rate,
                "consumption_rate": measured.consumption_rate,
                "time_lag_s": measured.time_lag_s,
            }.items()
        },
        "status": named(np.where(_has_left(newest), -1, measured.status), STATUSES),
    }
    return pa.table({name: columns[name] for name in LAG.names}, schema=LAG).take(known)


def _has_left(newest: pa.Table) -> npt.NDArray[np.bool_]:
    """Return for each partition whether the group has left the partition's topic."""
    (row,) = newest.select(["topics", "counts", "subscriptions"]).to_pylist()
    left = left_topics(row["topics"], row["subscriptions"])
    return np.repeat(np.array([topic in left for topic in row["topics"]], bool), row["counts"])


def _moments(seconds: npt.NDArray[np.float64]) -> npt.NDArray[np.datetime64]:
    """Convert seconds since the epoch to times for Arrow; unknown times become the epoch."""
    return np.rint(np.nan_to_num(seconds) * MICROSECONDS).astype("datetime64[us]")
