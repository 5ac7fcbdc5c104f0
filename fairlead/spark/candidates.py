"""Candidate plans: every assignor of a group's policy on the same lag, one group a task.

Belongs here: cutting the tables into groups, running the assignors on each, and what becomes of a
group that cannot be planned. Does not: the assignors (`assignors`), nor choosing among candidates
(`fairlead.plans.choice`).

Planning is columnar: a task receives Arrow tables of one group and returns one; executors need
`assignors` and numpy, no settings.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.pandas.types import from_arrow_schema

from fairlead.policy import Policy
from fairlead.spark.planning import PARTITIONS, PLANNED, SUMMARY, plan_group


@dataclass(frozen=True, eq=False)
class Candidates:
    """What the assignors would do with the groups of a snapshot.

    Parameters
    ----------
    summary
        One row a group and assignor, and one for its current assignment, under the name
        `observed`: snapshot_id, group, assignor, error, the figures of
        `assignors.metrics.Metrics`, outcome. A group or assignor that failed has an error and no
        figures.
    partitions
        One row a partition in each candidate: snapshot_id, group, assignor, topic, partition,
        previous_member, member, weight, reason. The reason is null where the owner stays.
    """

    summary: DataFrame
    partitions: DataFrame
    _planned: DataFrame

    def release(self) -> None:
        """Free what Spark keeps so that planning runs once for both tables."""
        self._planned.unpersist()


def candidate_plans(
    lag: DataFrame,
    members: DataFrame,
    groups: DataFrame,
    policies: Mapping[str, Policy],
) -> Candidates:
    """Run every assignor of each group's policy.

    Planning happens when either table is first used, once for both.

    Parameters
    ----------
    lag
        As `fairlead.spark.lag.partition_lag` returns it.
    members, groups
        Tables of the same snapshot.
    policies
        Group to its policy, for every group of `groups`.

    Notes
    -----
    A group with an error in the snapshot yields one row, `observed`, with that error. So does a
    group whose planning raises; the others are not affected. A group without members, or whose
    members read no partition, yields one row, `observed`, whose outcome says so.
    """
    rules = groups.sparkSession.createDataFrame(
        [(group, *_rule(policy)) for group, policy in policies.items()],
        "group string, assignors array<string>, options string",
    )
    rosters = (
        groups.select("snapshot_id", "group", "error")
        .join(sf.broadcast(rules), "group", "left")
        .join(members.drop("snapshot_id"), "group", "left")
    )
    loads = lag.select("group", "topic", "partition", sf.col("lag").alias("weight"), "arrival_rate")
    planned = (
        rosters.groupBy("group")
        .cogroup(loads.groupBy("group"))
        .applyInArrow(plan_group, from_arrow_schema(PLANNED))
        .persist(StorageLevel.MEMORY_AND_DISK)
    )
    is_summary = sf.col("partition").isNull()
    return Candidates(
        summary=planned.where(is_summary).select(*SUMMARY.names),
        partitions=planned.where(~is_summary).select(*PARTITIONS.names),
        _planned=planned,
    )


def _rule(policy: Policy) -> tuple[list[str], str]:
    options = {name: policy.assignor_options(name) for name in policy.assignors}
    return list(policy.assignors), json.dumps(options)
