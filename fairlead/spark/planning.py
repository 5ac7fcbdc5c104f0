"""Planning the groups of a Spark task: reads tables of the warehouse, computes candidates.

Belongs here: the columns of candidates, and reading the inputs of a task. Belongs elsewhere:
starting tasks (`candidates`), analysing a group (`fairlead.domain.candidate_rows`).

Tables are sorted so that a task reads consecutive rows, and Spark shuffles nothing.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from itertools import islice
from typing import Final

import pyarrow as pa

from assignors.metrics import Metrics
from fairlead.domain.candidate_rows import Row, analyse_group
from fairlead.domain.history import history_needed
from fairlead.domain.records import capacities_of
from fairlead.domain.samples.questions import Group, PlanningOptions
from fairlead.spark.dealing import samples_until
from fairlead.spark.warehouse import Warehouse

_CAPACITIES: Final = pa.list_(
    pa.struct(
        {
            "member": pa.string(),
            "records_per_s": pa.float64(),
            "measured": pa.bool_(),
            "at": pa.float64(),
        }
    )
)
CANDIDATES: Final = pa.schema(
    {
        "snapshot_id": pa.string(),
        "group": pa.string(),
        "assignor": pa.string(),
        # The figures of the candidate.
        "error": pa.string(),
        **{
            figure.name: pa.float64() if figure.type is float else pa.int64()
            for figure in fields(Metrics)
        },
        "forecast_time_lag_s": pa.float64(),
        "utilisation": pa.float64(),
        "catch_up_s": pa.float64(),
        "rack_gb_per_day": pa.float64(),
        "rack_cost_per_day": pa.float64(),
        "outcome": pa.string(),
        # The layout of the group, and the assignment.
        "topics": pa.list_(pa.string()),
        "partition_counts": pa.list_(pa.int64()),
        "weights": pa.list_(pa.int64()),
        "owner": pa.list_(pa.int32()),
        "reasons": pa.list_(pa.struct({"index": pa.int32(), "reason": pa.string()})),
        # The analysis.
        "diagnosis": pa.string(),
        "names": pa.list_(pa.string()),
        "evidence": pa.string(),
        "loss_s": pa.float64(),
        "consumers_wanted": pa.int64(),
        "consumers_why": pa.string(),
        "costs": pa.string(),
        "remembered_costs": pa.string(),
        "reported": pa.string(),
        "decision": pa.string(),
        "decision_reason": pa.string(),
        "chosen": pa.string(),
        "capacities": _CAPACITIES,
        "arrival_rates": pa.list_(pa.float64()),
        "backlog": pa.list_(pa.float64()),
        "behind_s": pa.list_(pa.float64()),
        "capacity_used": pa.list_(pa.float64()),
        "statuses": pa.list_(pa.string()),
    }
)
"""One row per candidate, and one for the observed assignment, with assignments as flat arrays.

`forecast_time_lag_s` and `utilisation` are the forecast: the worst partition's time lag at the
policy's horizon, and the most utilised member's arrivals divided by its capacity.
`rack_gb_per_day`, gigabytes per day from other racks, and `rack_cost_per_day` are null if they are
unknown or not counted. The row `observed` has the layout of the group: `topics` and their
`partition_counts`, whose partitions follow one another in every array; `weights`, the lag of each
partition in records. `owner` has an index into the members of the sample for each partition, -1
without an owner. `reasons` are the assignor's, by the partition's index in the arrays.

The row `observed` also has the analysis: the diagnosis with its names and evidence; `loss_s`,
seconds until retention overtakes the group, null if it does not; `catch_up_s`, seconds until the
group is within its objective, null if it never is; the number of consumers needed, and why; the
costs of records, as JSON; the decision (`plan` or `no change`) with its reason and the assignor
`chosen`; `capacities`, the present knowledge of members; `arrival_rates`, records per second of
each partition, with its `backlog` in records and the age of its oldest record in seconds,
`behind_s`; `capacity_used`, the capacity of each member in the forecast, in records per
second; `statuses`, the statuses of partitions, if the decision is a plan. All are null if there is
nothing to assign.
"""
QUESTIONS: Final = pa.schema(
    {
        "group": pa.string(),
        "task": pa.int32(),
        "changes": pa.list_(pa.float64()),
        "capacities": _CAPACITIES,
        "costs": pa.string(),
    }
)
"""One row per group, by task and name: its task, and its memories from Postgres."""

#: Number of groups in a batch of rows.
_AT_ONCE: Final = 200


def plan_task(
    path: str, snapshot_id: str, options: Mapping[str, PlanningOptions], task: int
) -> Iterator[pa.RecordBatch]:
    """Analyse the groups of one task.

    Parameters
    ----------
    path
        The path of the warehouse.
    options
        Maps each group to the options of its policy.

    Yields
    ------
    Rows of the schema `CANDIDATES`, ordered by group.
    """
    groups = _groups(path, snapshot_id, task)
    analysed = (analyse_group(group, options[group.name]) for group in groups)
    while portion := list(islice(analysed, _AT_ONCE)):
        yield as_batch([row for rows in portion for row in rows])


def as_batch(rows: Sequence[Row]) -> pa.RecordBatch:
    """Convert rows to a batch of the schema `CANDIDATES`."""
    return pa.record_batch(
        [
            pa.array([row.get(candidate.name) for row in rows], candidate.type)
            for candidate in CANDIDATES
        ],
        schema=CANDIDATES,
    )


def _groups(path: str, snapshot_id: str, task: int) -> Iterator[Group]:
    """Yield the groups of a task with their samples, and with what earlier analyses have stored."""
    rows = Warehouse(path).load("questions", snapshot_id, [("task", "==", task)]).to_pylist()
    samples: dict[str, pa.Table] = {}
    for remembered in (True, False):
        groups = [row["group"] for row in rows if bool(row["capacities"]) is remembered]
        samples |= samples_until(path, snapshot_id, history_needed(remembered=remembered), groups)
    for row in rows:
        known = capacities_of(row["capacities"] or ())
        costs = json.loads(row["costs"] or "{}")
        yield Group(samples[row["group"]], known, row["changes"] or (), costs)
