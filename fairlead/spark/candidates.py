"""Candidate plans: every group of a snapshot analysed, and its policy's assignors run where needed.

Belongs here: what tasks have to know. Does not: dealing groups out to them (`dealing`), what a task
does (`planning`), the analysis (`fairlead.domain.analysis`), storing what it came to
(`fairlead.workflows`).

Executors need this package and numpy, no settings.
"""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial

import pyarrow as pa
from pyspark.sql import SparkSession

from fairlead.domain.analysis.capacities import Capacity
from fairlead.domain.analysis.costs import CostRows
from fairlead.domain.policy import Policy
from fairlead.domain.records import capacity_rows
from fairlead.domain.samples.questions import PlanningOptions
from fairlead.spark.dealing import deal_snapshot, in_tasks
from fairlead.spark.planning import CANDIDATES, QUESTIONS, plan_task
from fairlead.spark.warehouse import Warehouse

#: Snapshots of more groups are fleets: candidates are computed where a plan may be called for.
COMPARED: int = 200

Capacities = Mapping[str, Mapping[str, Capacity]]


def write_candidates(
    spark: SparkSession,
    warehouse: Warehouse,
    snapshot_id: str,
    policies: Mapping[str, Policy],
    *,
    capacities: Capacities | None = None,
    changes: Mapping[str, Sequence[datetime]] | None = None,
    costs: Mapping[str, CostRows] | None = None,
) -> None:
    """Analyse every group of a snapshot, and compute the candidates of its policy's assignors.

    They are the snapshot's table `candidates`, of the schema `fairlead.spark.planning.CANDIDATES`:
    one row a group and assignor, and one for its current assignment, under the name `observed`. A
    group or assignor that failed has an error and no figures.

    Parameters
    ----------
    warehouse
        Holds the snapshot and, in the archive beside it, the samples before it; there may be none.
    policies
        Group to its policy, for every group of the snapshot.
    capacities
        Group to what is remembered of its members' speeds.
    changes
        Group to when plans of it took effect lately, ascending.
    costs
        Group to its remembered costs, by `Costs.rows`.

    Notes
    -----
    A group with an error in the snapshot yields one row, `observed`, with that error. So does a
    group whose analysis raises; the others are not affected. A group without members, or whose
    members read no partition, yields one row, `observed`, whose outcome says so. In a snapshot of
    more than `COMPARED` groups, those that are to stay as they are have no candidates beside them.

    Groups are dealt out by `dealing.deal`. Assignments are arrays of one row a candidate.
    """
    tasks = deal_snapshot(spark, warehouse, snapshot_id)
    questions = _questions(tasks, capacities or {}, changes or {}, costs or {})
    warehouse.write("questions", snapshot_id, questions)
    compare = len(tasks) <= COMPARED
    by_policy = {
        id(policy): PlanningOptions.of(policy, compare=compare) for policy in policies.values()
    }
    options = {group: by_policy[id(policy)] for group, policy in policies.items()}
    work = partial(plan_task, warehouse.path, snapshot_id, options)
    with warehouse.in_parts("candidates", snapshot_id, CANDIDATES) as parts:
        in_tasks(spark, len({*tasks.values()}), work, parts)


def _questions(
    tasks: Mapping[str, int],
    capacities: Capacities,
    changes: Mapping[str, Sequence[datetime]],
    costs: Mapping[str, CostRows],
) -> pa.Table:
    """Return the table `questions` of a snapshot."""
    rows = [
        {
            "group": group,
            "task": task,
            "changes": [at.timestamp() for at in changes.get(group, ())],
            "capacities": capacity_rows(capacities.get(group, {})),
            "costs": json.dumps(costs.get(group, {})),
        }
        for group, task in tasks.items()
    ]
    table = pa.Table.from_pylist(rows, QUESTIONS)
    return table.sort_by([("task", "ascending"), ("group", "ascending")])
