"""Candidate plans: analyse every group of a snapshot, and run its policy's assignors if needed.

Belongs here: the inputs of the tasks. Does not: assigning groups to tasks (`dealing`), the work of
a task (`planning`), the analysis (`fairlead.domain.analysis`), storing decisions
(`fairlead.workflows`).

Executors need this package and numpy, no settings.
"""

import json
from collections.abc import Mapping
from functools import partial

import pyarrow as pa
from pyspark.sql import SparkSession

from fairlead.domain.group_memories import GroupMemories
from fairlead.domain.policy import Policy
from fairlead.domain.records import capacity_rows
from fairlead.domain.samples.questions import PlanningOptions
from fairlead.spark.dealing import deal_snapshot, in_tasks
from fairlead.spark.planning import CANDIDATES, QUESTIONS, plan_task
from fairlead.spark.warehouse import Warehouse

#: Groups. In larger snapshots, candidates are computed only for groups that may need a plan.
COMPARED: int = 200


def write_candidates(
    spark: SparkSession,
    warehouse: Warehouse,
    snapshot_id: str,
    policies: Mapping[str, Policy],
    memories: GroupMemories,
) -> None:
    """Analyse every group of a snapshot, and compute the candidates of its policy's assignors.

    Writes the snapshot's table `candidates`, of the schema `fairlead.spark.planning.CANDIDATES`:
    one row per group and assignor, and one for the group's current assignment, named `observed`. A
    group or assignor that failed has an error and no figures.

    Parameters
    ----------
    warehouse
        Has the snapshot and, in the archive beside it, earlier samples, if any.
    policies
        Group to its policy, for every group of the snapshot.
    memories
        The memories of the groups.

    Notes
    -----
    A group with an error in the snapshot has one row, `observed`, with that error. So does a group
    whose analysis raises an error; other groups are not affected. A group without members, or whose
    members read no partition, has one row, `observed`, with the reason as its outcome. In a
    snapshot of more than `COMPARED` groups, groups that need no plan have no candidates.

    `dealing.deal` assigns groups to tasks. An assignment is an array in the row of its candidate.
    """
    tasks = deal_snapshot(spark, warehouse, snapshot_id)
    questions = _questions(tasks, memories)
    warehouse.write("questions", snapshot_id, questions)
    compare = len(tasks) <= COMPARED
    by_policy = {
        id(policy): PlanningOptions.of(policy, compare=compare) for policy in policies.values()
    }
    options = {group: by_policy[id(policy)] for group, policy in policies.items()}
    work = partial(plan_task, warehouse.path, snapshot_id, options)
    with warehouse.in_parts("candidates", snapshot_id, CANDIDATES) as parts:
        in_tasks(spark, len({*tasks.values()}), work, parts)


def _questions(tasks: Mapping[str, int], memories: GroupMemories) -> pa.Table:
    """Return the table `questions`: each group's task, and its knowledge from earlier snapshots."""
    rows = [
        {
            "group": group,
            "task": task,
            "changes": [at.timestamp() for at in memories.changes.get(group, ())],
            "capacities": capacity_rows(memories.capacities.get(group, {})),
            "costs": json.dumps(memories.costs.get(group, {})),
        }
        for group, task in tasks.items()
    ]
    table = pa.Table.from_pylist(rows, QUESTIONS)
    return table.sort_by([("task", "ascending"), ("group", "ascending")])
