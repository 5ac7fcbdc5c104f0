"""Candidate plans: every group of a snapshot judged, and its policy's assignors run where needed.

Belongs here: dealing groups out to tasks, and what these have to know. Does not: what a task does
(`planning`), the judgement (`fairlead.judgement`), storing what it came to (`fairlead.plans`).

A task reads its groups' stretch of the warehouse by itself: nothing is shuffled, and Spark hands
rows on in batches, not group by group. Executors need this package and numpy, no settings.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from fairlead.judgement.capacities import Capacity
from fairlead.looks.questions import Ways
from fairlead.policy import Policy
from fairlead.spark.planning import CANDIDATES, QUESTIONS, Place, plan_task
from fairlead.spark.warehouse import Warehouse

#: Snapshots of more groups are fleets: candidates are computed where a plan may be called for.
COMPARED: int = 200
#: Groups of a task: what it reads of their looks fits into memory many times over.
GROUPS_IN_TASK: int = 512

Capacities = Mapping[str, Mapping[str, Capacity]]


def candidate_plans(
    spark: SparkSession,
    warehouse: Warehouse,
    snapshot_id: str,
    policies: Mapping[str, Policy],
    *,
    capacities: Capacities | None = None,
    changed_at: Mapping[str, datetime] | None = None,
) -> DataFrame:
    """Judge every group of a snapshot, and compute the candidates of its policy's assignors.

    Parameters
    ----------
    warehouse
        Holds the snapshot and, in the archive beside it, the looks before it; there may be none.
    policies
        Group to its policy, for every group of the snapshot.
    capacities
        Group to what is remembered of its members' speeds.
    changed_at
        Group to when a plan of it last took effect.

    Returns
    -------
    DataFrame
        Of the schema `fairlead.spark.planning.CANDIDATES`: one row a group and assignor, and one
        for its current assignment, under the name `observed`. A group or assignor that failed has
        an error and no figures.

    Notes
    -----
    A group with an error in the snapshot yields one row, `observed`, with that error. So does a
    group whose judgement raises; the others are not affected. A group without members, or whose
    members read no partition, yields one row, `observed`, whose outcome says so. In a snapshot of
    more than `COMPARED` groups, those that are to stay as they are have no candidates beside them.

    Groups are dealt out by `deal`. Assignments are arrays of one row a candidate: what travels
    between Python, Spark and Parquet is a few bytes a partition and candidate.
    """
    groups = warehouse.load("groups", snapshot_id)
    look = warehouse.load("look", snapshot_id)
    sizes = dict(zip(look["group"].to_pylist(), map(len, look["end"].to_pylist()), strict=True))
    wanted = int(spark.conf.get("spark.sql.shuffle.partitions") or 1)
    tasks = deal(sizes, max(wanted, -(-len(sizes) // GROUPS_IN_TASK)))
    ways, way_of = _ways(policies, compare=len(sizes) <= COMPARED)
    questions = _questions(tasks, way_of, capacities or {}, changed_at or {})
    warehouse.write("questions", snapshot_id, questions)
    if not groups.num_rows:
        return spark.createDataFrame([], from_arrow_schema(CANDIDATES))
    place = Place(warehouse.path, snapshot_id, groups["snapshot_at"][0].as_py())
    count = 1 + max(tasks.values())
    numbers = spark.range(0, count, 1, count)
    return numbers.mapInArrow(_planning(place, ways), from_arrow_schema(CANDIDATES))


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


def _ways(policies: Mapping[str, Policy], *, compare: bool) -> tuple[list[Ways], dict[str, int]]:
    """Return the different ways in which groups are judged, and which is each group's."""
    ways: list[Ways] = []
    places: dict[int, int] = {}
    way_of = {}
    for group, policy in policies.items():
        if id(policy) not in places:
            places[id(policy)] = len(ways)
            ways.append(Ways.of(policy, compare=compare))
        way_of[group] = places[id(policy)]
    return ways, way_of


def _questions(
    tasks: Mapping[str, int],
    way_of: Mapping[str, int],
    capacities: Capacities,
    changed_at: Mapping[str, datetime],
) -> pa.Table:
    """Return the table `questions` of a snapshot."""
    rows = [
        {
            "group": group,
            "task": task,
            "way": way_of[group],
            "changed_at": changed_at[group].timestamp() if group in changed_at else None,
            "capacities": [
                {"member": name, **vars(one)} for name, one in capacities.get(group, {}).items()
            ],
        }
        for group, task in tasks.items()
    ]
    table = pa.Table.from_pylist(rows, QUESTIONS)
    return table.sort_by([("task", "ascending"), ("group", "ascending")])


def _planning(
    place: Place, ways: Sequence[Ways]
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def plan(numbers: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in numbers:
            for task in batch.column(0).to_pylist():
                yield from plan_task(place, task, ways)

    return plan
