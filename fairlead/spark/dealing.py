"""Dealing groups out to Spark tasks.

Belongs here: assigning groups to tasks, reading a task's samples, and starting the tasks. Does not:
what a task computes (`lag`, `planning`).

A task reads its groups from the warehouse and writes its own part of a table: nothing is shuffled,
and no row goes through the JVM.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from fairlead.archive import SampleArchive, with_history
from fairlead.spark.warehouse import Parts, Warehouse

if TYPE_CHECKING:  # `fairlead plan` imports this module, and must not wait for Spark
    from pyspark.sql import SparkSession

#: Maximum mean number of groups per task; limits what a task reads at once.
GROUPS_IN_TASK: Final = 512


def deal_snapshot(spark: "SparkSession", warehouse: Warehouse, snapshot_id: str) -> dict[str, int]:
    """Return the number of the task for each group of a snapshot.

    Tasks: `spark.sql.shuffle.partitions`, more for many groups, plus one for each large group.

    Raises
    ------
    FileNotFoundError
        The archive no longer has the whole snapshot.
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
    """Return each group's samples, by time, from `length` before the snapshot up to it.

    Parameters
    ----------
    path
        The path of the warehouse.

    Raises
    ------
    FileNotFoundError
        The archive no longer has the snapshot of all these groups.
    """
    archive = SampleArchive(path)
    return with_history(archive, archive.sample(snapshot_id, groups), length)


def deal(sizes: Mapping[str, int], tasks: int) -> dict[str, int]:
    """Deal groups out to tasks, which run in the order of their numbers.

    A task has consecutive groups, by name, and about as many partitions as any other. A group
    with more partitions than a task's fair share has a task of its own, after all others, so that
    small groups do not wait for it.

    Parameters
    ----------
    sizes
        Group to number of partitions.
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
    # Plus one, because a group without partitions is work, too.
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
        Task number to rows; runs on executors.
    parts
        The parts of the table.
    """

    def write(numbers: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in numbers:
            for task in batch.column(0).to_pylist():
                parts.write(task, work(task))
            yield batch.slice(0, 0)  # mapInArrow must yield batches

    if not tasks:  # readers need an empty table
        parts.write(0, ())
        return
    spark.range(0, tasks, 1, tasks).mapInArrow(write, "id long").collect()
