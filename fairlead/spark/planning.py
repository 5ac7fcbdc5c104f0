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
from fairlead.domain.candidate_figures import FORECAST, RACKS
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
#: One row per candidate, and a row `observed` for each group's current assignment.
#:
#: Columns of all rows, besides the figures of `Metrics`:
#:
#: - `forecast_time_lag_s`: forecast time lag of the worst partition at the policy's horizon.
#: - `utilisation`: forecast arrivals of the most utilised member, divided by its capacity.
#: - `catch_up_s`: seconds until the group is within its objective; null: never.
#: - `rack_gb_per_day`, `rack_cost_per_day`: gigabytes per day that consumers fetch from other
#:   racks, and their cost; null: unknown or not counted.
#: - `owner`: each partition's owner as an index into the members of the sample; -1: no owner.
#: - `reasons`: the assignor's reasons, each with the index of a partition.
#:
#: Columns of only the row `observed`:
#:
#: - `topics`, `partition_counts`: arrays contain the partitions of the first topic, then those of
#:   the second, and so on.
#: - `weights`: lag of each partition, in records.
#:
#: Columns of the analysis, also only of the row `observed`; null if there is nothing to assign:
#:
#: - `diagnosis`, `names`, `evidence`: the diagnosis, the members or partitions that it names, and
#:   the evidence.
#: - `loss_s`: seconds until retention deletes records that the group has not read; null: never.
#: - `consumers_wanted`, `consumers_why`: the number of consumers needed, and why.
#: - `costs`: costs of records, as JSON.
#: - `decision`, `decision_reason`, `chosen`: `plan` or `no change`, why, and the chosen assignor.
#: - `capacities`: the known speeds of members.
#: - `arrival_rates`, `backlog`, `behind_s`: for each partition, arriving records per second,
#:   backlog in records, and age of the oldest record in the backlog in seconds.
#: - `capacity_used`: capacity of each member in the forecast, in records per second.
#: - `statuses`: statuses of the partitions, if the decision is a plan.
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
        **dict.fromkeys((*FORECAST, *RACKS), pa.float64()),
        "outcome": pa.string(),
        # The group's topics and partitions, and the assignment.
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
#: One row per group, ordered by task and name: the task, and what earlier analyses have stored.
QUESTIONS: Final = pa.schema(
    {
        "group": pa.string(),
        "task": pa.int32(),
        "changes": pa.list_(pa.float64()),
        "capacities": _CAPACITIES,
        "costs": pa.string(),
    }
)

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
    """Yield the groups of a task with their samples and the stored results of earlier analyses."""
    rows = Warehouse(path).load("questions", snapshot_id, [("task", "==", task)]).to_pylist()
    samples: dict[str, pa.Table] = {}
    for remembered in (True, False):
        groups = [row["group"] for row in rows if bool(row["capacities"]) is remembered]
        samples |= samples_until(path, snapshot_id, history_needed(remembered=remembered), groups)
    for row in rows:
        known = capacities_of(row["capacities"] or ())
        costs = json.loads(row["costs"] or "{}")
        yield Group(samples[row["group"]], known, row["changes"] or (), costs)
