"""Distributing groups over Spark tasks.

Belongs here: assigning groups to tasks, reading a task's samples, and starting the tasks. Belongs
elsewhere: what a task computes (`lag`, `planning`).

A task reads its groups from the warehouse and writes its own part of a table. So Spark shuffles
nothing, and no row goes through the JVM.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from fairlead.archive import SampleArchive, with_history
from fairlead.spark.warehouse import Parts, Warehouse

if TYPE_CHECKING:  # `fairlead plan` imports this module and must start fast
    from pyspark.sql import SparkSession

#: Maximum mean number of groups per task, which limits the memory of a task.
GROUPS_IN_TASK: Final = 512


def deal_snapshot(spark: "SparkSession", warehouse: Warehouse, snapshot_id: str) -> dict[str, int]:
    """Return each group of a snapshot with the number of its task.

    There are `spark.sql.shuffle.partitions` tasks, or more if these would have more than
    `GROUPS_IN_TASK` groups on average. Each large group gets an additional task.

    Raises
    ------
    FileNotFoundError
        The archive no longer has the samples of some groups.
    """
    groups = warehouse.load("groups", snapshot_id, columns=["group"])["group"].to_pylist()
    sample = SampleArchive(warehouse.path).sample(snapshot_id, groups, ["group", "end"])
    lengths = pc.list_value_length(sample["end"]).to_pylist()
    sizes = dict(zip(sample["group"].to_pylist(), lengths, strict=True))
    wanted = int(spark.conf.get("spark.sql.shuffle.partitions") or 1)
    return deal(sizes, max(wanted, -(-len(sizes) // GROUPS_IN_TASK)))


def samples_until(
    path: str, snapshot_id: str, length: timedelta, groups: Sequence[str]
) -> dict[str, pa.Table]:
    """Return each group's sample in a snapshot, and its samples in the period before, oldest first.

    Parameters
    ----------
    path
        The path of the warehouse.
    length
        Length of the period before the snapshot.

    Raises
    ------
    FileNotFoundError
        The archive no longer has the snapshot's rows of some groups.
    """
    archive = SampleArchive(path)
    return with_history(archive, archive.sample(snapshot_id, groups), length)


def deal(sizes: Mapping[str, int], tasks: int) -> dict[str, int]:
    """Return the number of each group's task; tasks run in the order of their numbers.

    Each task gets groups with consecutive names, and all tasks get about the same number of
    partitions. A group with more partitions than that gets a separate task. These tasks come
    last, so that smaller groups need not wait.

    Parameters
    ----------
    sizes
        Maps each group to its number of partitions.
    tasks
        Number of tasks for the smaller groups; positive.

    Examples
    --------
    >>> deal({"a": 3, "b": 3, "c": 2, "giant": 90, "d": 2}, 2)
    {'a': 0, 'b': 0, 'c': 1, 'd': 1, 'giant': 2}
    """
    fair_share = sum(sizes.values()) / tasks
    giants = sorted((size, group) for group, size in sizes.items() if size > fair_share)
    alone = {group for _, group in giants}
    others = sorted(sizes.keys() - alone)
    # Count each group as one more partition: even a group without partitions takes time.
    share = sum(sizes[group] + 1 for group in others) / tasks
    dealt, before = {}, 0
    for group in others:
        dealt[group] = min(tasks - 1, int((before + (sizes[group] + 1) / 2) / share))
        before += sizes[group] + 1
    used = {task: place for place, task in enumerate(sorted(set(dealt.values())))}
    dealt = {group: used[task] for group, task in dealt.items()}
    return dealt | {group: place for place, (_, group) in enumerate(giants, len(used))}


def in_tasks(
    spark: "SparkSession",
    tasks: int,
    work: Callable[[int], Iterable[pa.RecordBatch]],
    parts: Parts,
) -> None:
    """Run `work` in Spark tasks; each writes a part of a table.

    Parameters
    ----------
    tasks
        Number of tasks.
    work
        Function from the number of a task to its rows; runs on executors.
    parts
        The table to write.
    """

    def write(numbers: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in numbers:
            for task in batch.column(0).to_pylist():
                parts.write(task, work(task))
            yield batch.slice(0, 0)  # mapInArrow must yield batches

    if not tasks:  # write an empty table for readers
        parts.write(0, ())
        return
    spark.range(0, tasks, 1, tasks).mapInArrow(write, "id long").collect()
