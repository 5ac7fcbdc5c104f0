"""Dealing groups out to Spark tasks.

Belongs here: which task a group goes to, what a task reads of its groups, and starting the tasks.
Does not: what a task does (`lag`, `planning`).

A task reads its groups' stretch of the warehouse and writes its part of a table by itself: nothing
is shuffled, and no row goes through the JVM.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from fairlead.archive import LookArchive
from fairlead.common.tables import slices
from fairlead.spark.warehouse import Parts, Place

if TYPE_CHECKING:  # `fairlead plan` imports this module, and must not wait for Spark
    from pyspark.sql import SparkSession

#: Groups of a task: what it reads of their looks fits into memory many times over.
GROUPS_IN_TASK: Final = 512


def deal_snapshot(spark: "SparkSession", place: Place) -> dict[str, int]:
    """Deal the groups of a snapshot out to as many tasks as Spark is set to; group to task.

    Raises
    ------
    FileNotFoundError
        The archive does not have the whole snapshot any more: it was damaged.
    """
    sample = LookArchive(place.warehouse).sample(place.snapshot_id)
    sample = sample.filter(pc.is_in(sample["group"], pa.array(place.groups, pa.string())))
    if sample.num_rows < len(place.groups):
        raise FileNotFoundError(
            f"The offsets of snapshot {place.snapshot_id} are not kept any more. Take another: "
            "materialize group_offsets"
        )
    lengths = pc.list_value_length(sample["end"]).to_pylist()
    sizes = dict(zip(sample["group"].to_pylist(), lengths, strict=True))
    wanted = int(spark.conf.get("spark.sql.shuffle.partitions") or 1)
    return deal(sizes, max(wanted, -(-len(sizes) // GROUPS_IN_TASK)))


def samples_until(place: Place, since: datetime, groups: Sequence[str]) -> dict[str, pa.Table]:
    """Read the samples of some groups, by time; the last is that of the snapshot."""
    archive = LookArchive(place.warehouse)
    found = {}
    for group, rows in slices(archive.read(since, place.snapshot_at, groups), "group").items():
        last = pc.index(rows["sample_id"], place.snapshot_id).as_py()
        found[group] = rows.slice(0, last + 1)
    return found


def deal(sizes: Mapping[str, int], tasks: int) -> dict[str, int]:
    """Deal groups out to tasks, which run in the order of their numbers.

    A task has a stretch of the groups, in the order of their names, and about as many partitions as
    the others. A group that is larger than a task's fair share of all partitions has a task of its
    own, after all others: the small ones do not wait for it.

    Parameters
    ----------
    sizes
        Group to number of partitions.
    tasks
        How many tasks the others share; positive.

    Examples
    --------
    >>> deal({"a": 3, "b": 3, "c": 2, "giant": 90, "d": 2}, 2)
    {'a': 0, 'b': 0, 'c': 1, 'd': 1, 'giant': 2}
    """
    fair_share = sum(sizes.values()) / tasks
    giants = sorted((size, group) for group, size in sizes.items() if size > fair_share)
    alone = {group for _, group in giants}
    others = sorted(sizes.keys() - alone)
    # A group without partitions is some work, too.
    share = sum(sizes[group] + 1 for group in others) / tasks
    dealt, before = {}, 0
    for group in others:
        dealt[group] = min(tasks - 1, int((before + (sizes[group] + 1) / 2) / share))
        before += sizes[group] + 1
    used = {task: place for place, task in enumerate(sorted(set(dealt.values())))}
    dealt = {group: used[task] for group, task in dealt.items()}
    return dealt | {group: place for place, (_, group) in enumerate(giants, len(used))}


def in_tasks(
    spark: "SparkSession", tasks: int, work: Callable[[int], Iterable[pa.RecordBatch]], parts: Parts
) -> None:
    """Do work in so many tasks, each of which writes a part of a table.

    Parameters
    ----------
    tasks
        How many; positive.
    work
        Task number to rows; runs on executors.
    parts
        Of the table.
    """

    def write(numbers: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in numbers:
            for task in batch.column(0).to_pylist():
                parts.write(task, work(task))
            yield batch.slice(0, 0)  # a DataFrame has rows

    spark.range(0, tasks, 1, tasks).mapInArrow(write, "id long").collect()
