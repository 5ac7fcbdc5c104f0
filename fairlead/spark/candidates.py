"""Candidate plans: analyse every group of a snapshot, and run the assignors of its policy.

Belongs here: writing the input of the tasks. Belongs elsewhere: assigning groups to tasks
(`dealing`), the work of a task (`planning`), the analysis (`fairlead.domain.analysis`), storing
decisions (`fairlead.workflows`).

Executors need this package and numpy, but no settings.
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

#: In snapshots of more groups than this, only groups that may need a plan get candidates.
COMPARED: int = 200


def write_candidates(
    spark: SparkSession,
    warehouse: Warehouse,
    snapshot_id: str,
    policies: Mapping[str, Policy],
    memories: GroupMemories,
) -> None:
    """Analyse every group of a snapshot, and compute a candidate with each assignor of its policy.

    Writes the snapshot's table `candidates`, of the schema `fairlead.spark.planning.CANDIDATES`.
    For each group, the table has a row per assignor, and a row `observed` for the current
    assignment. If a group or an assignor fails, its row has an error and no figures.

    Parameters
    ----------
    warehouse
        The warehouse with the snapshot; the archive in it may have earlier samples.
    policies
        Maps each group of the snapshot to its policy.
    memories
        What earlier analyses have stored about the groups.

    Notes
    -----
    Some groups have only the row `observed`:

    - A group with an error in the snapshot, or whose analysis raises an error. The row has the
      error.
    - A group without members, or whose members read no partition. The row's outcome is the reason.
    - A group that needs no plan, in a snapshot of more than `COMPARED` groups.
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
    """Return the table `questions`: each group's task, and what earlier analyses have stored."""
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
