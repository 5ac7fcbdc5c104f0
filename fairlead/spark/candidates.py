"""Candidate plans: every assignor of a group's policy on the same lag, one group a task.

Belongs here: cutting the tables into groups, running the assignors on each, and what becomes of a
group that cannot be planned. Does not: the assignors (`assignors`), nor choosing among candidates
(`fairlead.plans.choice`).

Planning is columnar: a task receives Arrow tables of one group and returns one; executors need
`assignors` and numpy, no settings.
"""

import json
from collections.abc import Mapping

from pyspark.sql import DataFrame, GroupedData
from pyspark.sql import functions as sf
from pyspark.sql.pandas.types import from_arrow_schema

from fairlead.policy import Policy
from fairlead.spark.planning import CANDIDATES, plan_group


def candidate_plans(
    lag: DataFrame,
    members: DataFrame,
    groups: DataFrame,
    policies: Mapping[str, Policy],
) -> DataFrame:
    """Run every assignor of each group's policy.

    Parameters
    ----------
    lag
        As `fairlead.spark.lag.partition_lag` returns it, in the warehouse: it is read twice.
    members, groups
        Tables of the same snapshot.
    policies
        Group to its policy, for every group of `groups`.

    Returns
    -------
    DataFrame
        Of the schema `fairlead.spark.planning.CANDIDATES`: one row a group and assignor, and one
        for its current assignment, under the name `observed`. A group or assignor that failed has
        an error and no figures.

    Notes
    -----
    A group with an error in the snapshot yields one row, `observed`, with that error. So does a
    group whose planning raises; the others are not affected. A group without members, or whose
    members read no partition, yields one row, `observed`, whose outcome says so.

    Groups are dealt out to `spark.sql.shuffle.partitions` tasks by `deal`. Assignments are arrays
    of one row a candidate: what travels between Python, Spark and Parquet is a few bytes a
    partition and candidate.
    """
    spark = groups.sparkSession
    sizes = dict.fromkeys(policies, 0)
    sizes |= {row["group"]: row["count"] for row in lag.groupBy("group").count().collect()}
    tasks = deal(sizes, int(spark.conf.get("spark.sql.shuffle.partitions") or 1))
    rules = spark.createDataFrame(
        [(group, tasks[group], *_rule(policy)) for group, policy in policies.items()],
        "group string, task int, assignors array<string>, options string",
    )
    dealt = spark.createDataFrame(list(tasks.items()), "group string, task int")
    rosters = (
        sf.broadcast(rules)
        .join(groups.select("snapshot_id", "group", "error"), "group")
        .join(members.drop("snapshot_id"), "group", "left")
    )
    loads = lag.select(
        "group", "topic", "partition", sf.col("lag").alias("weight"), "arrival_rate"
    ).join(sf.broadcast(dealt), "group")
    count = 1 + max(tasks.values(), default=0)

    def by_group(rows: DataFrame) -> GroupedData:
        return rows.repartitionById(count, "task").groupBy("task", "group")

    return (
        by_group(rosters)
        .cogroup(by_group(loads))
        .applyInArrow(plan_group, from_arrow_schema(CANDIDATES))
    )


def deal(sizes: Mapping[str, int], tasks: int) -> dict[str, int]:
    """Deal groups out to tasks, which run in the order of their numbers.

    A group that is larger than a task's fair share of all partitions has a task of its own, after
    all others: the small ones do not wait for it.

    Parameters
    ----------
    sizes
        Group to number of partitions.
    tasks
        How many tasks the others share; positive.

    Examples
    --------
    >>> deal({"a": 3, "b": 3, "c": 2, "giant": 90, "d": 2}, 2)
    {'a': 0, 'b': 1, 'c': 0, 'd': 1, 'giant': 2}
    """
    fair_share = sum(sizes.values()) / tasks
    ascending = sorted(sizes, key=lambda group: (sizes[group], group))
    giants = [group for group in ascending if sizes[group] > fair_share]
    others = sorted(sizes.keys() - set(giants), key=lambda group: (-sizes[group], group))
    dealt = {group: place % tasks for place, group in enumerate(others)}
    first = 1 + max(dealt.values(), default=-1)
    return dealt | {group: place for place, group in enumerate(giants, first)}


def _rule(policy: Policy) -> tuple[list[str], str]:
    options = {name: policy.assignor_options(name) for name in policy.assignors}
    return list(policy.assignors), json.dumps(options)
