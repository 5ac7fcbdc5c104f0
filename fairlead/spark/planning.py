"""Planning one group: Arrow tables in, one Arrow table out. Runs on Spark's executors.

Belongs here: building a group's assignment problem, running assignors on it, laying the results
out. Does not: Spark (`candidates`), any rule of assignment (`assignors`).
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from assignors.assignment import Assignment
from assignors.metrics import Metrics, measure
from assignors.problem import InvalidProblemError, Member, Problem
from assignors.registry import assign
from assignors.verifier import violations

OBSERVED: Final = "observed"
"""The name under which a group's current assignment stands among the candidates."""

_KEY: Final = {"snapshot_id": pa.string(), "group": pa.string(), "assignor": pa.string()}
_SUMMARY: Final = {
    "error": pa.string(),
    **{
        figure.name: pa.float64() if figure.type is float else pa.int64()
        for figure in fields(Metrics)
    },
    "outcome": pa.string(),
}
_LAYOUT: Final = {
    "topics": pa.list_(pa.string()),
    "partition_counts": pa.list_(pa.int64()),
    "members": pa.list_(pa.string()),
    "weights": pa.list_(pa.int64()),
}
_ASSIGNMENT: Final = {
    "owner": pa.list_(pa.int32()),
    "reasons": pa.list_(pa.struct({"index": pa.int32(), "reason": pa.string()})),
    "frontier": pa.list_(pa.struct({"moves": pa.int32(), "lag_max": pa.float64()})),
}
SUMMARY: Final = pa.schema(_KEY | _SUMMARY)
"""What is said of a candidate: the columns without arrays."""
CANDIDATES: Final = pa.schema(_KEY | _SUMMARY | _LAYOUT | _ASSIGNMENT)
"""One row a candidate, and one for the observed assignment, with assignments as flat arrays.

The row `observed` lays the group out: `topics` and their `partition_counts`, whose partitions stand
one behind the other in every array; `members`; `weights`, the lag of each partition in records.
`owner` has one index into `members` a partition, -1 for nobody. `reasons` are the assignor's own,
by the partition's place in the arrays. `frontier` is what fewer moves would have bought, at most
`FRONTIER` points of it with both ends: moves spent, and the heaviest member's lag then, in records.
All are null where there is nothing to assign, `frontier` also where an assignor has none, or has a
horizon: its loads are then arrivals too, and cannot stand beside the lag of the candidates.
"""
FRONTIER: Final = 100
"""A plot shows no more, and a fleet's groups are stored with each snapshot."""


def plan_group(roster: pa.Table, loads: pa.Table) -> pa.Table:
    """Run the assignors of one group's policy.

    Parameters
    ----------
    roster
        One row a member: snapshot_id, group, error, assignors, options (JSON: assignor to options)
        and the columns of the members' table, which are null in the one row of an empty group.
    loads
        One row a partition: topic, partition, weight, arrival_rate (null: unknown, taken for 0).
        Topics that nobody reads are ignored.

    Returns
    -------
    Rows of the schema `CANDIDATES`. What is wrong with the group is the error of its only row,
    `observed`; what is wrong with one assignor is the error of that assignor's row.
    """
    if not roster.num_rows:  # partitions of a group that the snapshot does not list
        return CANDIDATES.empty_table()
    group = roster.slice(0, 1).to_pylist()[0]
    try:
        tables = list(_plan(group, roster, loads))
    except Exception as error:  # noqa: BLE001 - one group's data must not fail the others' job
        tables = [_failure(OBSERVED, f"The group cannot be planned: {error!r}")]
    rows = pa.concat_tables([CANDIDATES.empty_table(), *tables], promote_options="default")
    for column, name in enumerate(("snapshot_id", "group")):
        values = pa.repeat(pa.scalar(group[name], pa.string()), rows.num_rows)
        rows = rows.set_column(column, name, values)
    return rows


def _plan(group: Mapping[str, Any], roster: pa.Table, loads: pa.Table) -> Iterator[pa.Table]:
    """Yield what is known of the observed assignment, then of each candidate."""
    if group["error"]:
        yield _failure(OBSERVED, group["error"])
        return
    problem = group_problem(roster, loads)
    observed = Assignment(problem, problem.owner)
    if not problem.members:
        yield _summary(observed, "The group has no members")
        return
    if not problem.partition_total:
        yield _summary(observed, "No member reads a topic that has partitions")
        return
    yield _candidate_row(observed, OBSERVED, _laid_out(problem))
    options = json.loads(group["options"])
    for name in group["assignors"]:
        yield from _candidate(name, problem, options.get(name, {}))


def _candidate(name: str, problem: Problem, options: Mapping[str, Any]) -> Iterator[pa.Table]:
    try:
        assignment = assign(name, problem, **options)
    except InvalidProblemError as error:
        yield _failure(name, str(error))
        return
    except Exception as error:  # noqa: BLE001 - one assignor must not take the others with it
        yield _failure(name, f"The assignor failed: {error!r}")
        return
    if broken := violations(problem, assignment):
        yield _failure(name, f"The assignment is invalid: {'; '.join(broken)}")
        return
    in_lag = not options.get("horizon")
    yield _candidate_row(assignment, name, {"frontier": _frontier(assignment) if in_lag else None})


def group_problem(roster: pa.Table, loads: pa.Table) -> Problem:
    """Build the problem of the topics that somebody reads.

    Parameters
    ----------
    roster, loads
        Of one group in one snapshot, as for `plan_group`; of the roster, the columns of members.

    Raises
    ------
    ValueError
        The lag of some partition is not known.
    """
    members = {
        row["member"]: Member(
            topics=row["topics"],
            owned=_owned(row["partitions"]),
            generation=row["generation"],
            instance_id=row["instance_id"],
        )
        for row in roster.filter(pc.is_valid(roster["member"])).to_pylist()
    }
    read = {topic for member in members.values() for topic in member.topics}
    loads = loads.filter(pc.is_in(loads["topic"], pa.array(sorted(read), pa.string())))
    cut = list(_cut(loads))
    return Problem.of(
        {topic: lags.size for topic, lags, _ in cut},
        members,
        {topic: lags for topic, lags, _ in cut},
        arrival_rates={topic: rates for topic, _, rates in cut},
    )


def _cut(
    loads: pa.Table,
) -> Iterator[tuple[str, npt.NDArray[np.int64], npt.NDArray[np.float64]]]:
    """Cut the loads into one array of lags and one of arrival rates a topic.

    Raises
    ------
    ValueError
        A topic lacks a partition: its owner could not be decided.
    """
    loads = loads.sort_by([("topic", "ascending"), ("partition", "ascending")]).combine_chunks()
    topics, starts = np.unique(loads["topic"].to_numpy(zero_copy_only=False), return_index=True)
    numbers = np.split(loads["partition"].to_numpy(), starts[1:])
    lags = np.split(loads["weight"].to_numpy(), starts[1:])
    rates = np.split(pc.fill_null(loads["arrival_rate"], 0.0).to_numpy(), starts[1:])
    # An empty table is still cut into one piece, of no topic.
    for topic, partitions, lag, rate in zip(topics.tolist(), numbers, lags, rates, strict=False):
        if not np.array_equal(partitions, np.arange(partitions.size)):
            raise ValueError(f"topic {topic}: the lag of some partition is not known")
        yield topic, lag, rate


def _owned(partitions: list[dict[str, Any]]) -> dict[str, list[int]]:
    owned: dict[str, list[int]] = {}
    for entry in partitions:
        owned.setdefault(entry["topic"], []).append(entry["partition"])
    return owned


def _summary(observed: Assignment, outcome: str) -> pa.Table:
    return _table({"assignor": OBSERVED, **_figures(observed), "outcome": outcome})


def _failure(name: str, error: str) -> pa.Table:
    return _table({"assignor": name, "error": error})


def _candidate_row(assignment: Assignment, name: str, more: Mapping[str, Any]) -> pa.Table:
    reasons = [{"index": index, "reason": why} for index, why in assignment.reasons.items()]
    return _table(
        {
            "assignor": name,
            **_figures(assignment),
            "outcome": assignment.outcome,
            **more,
            "owner": assignment.owner,
            "reasons": reasons,
        }
    )


def _frontier(assignment: Assignment) -> list[dict[str, Any]] | None:
    points = assignment.frontier
    if not points:
        return None
    kept = np.linspace(0, len(points) - 1, min(len(points), FRONTIER)).round().astype(np.int64)
    return [{"moves": points[i].moves, "lag_max": points[i].heaviest} for i in kept.tolist()]


def _laid_out(problem: Problem) -> dict[str, Any]:
    return {
        "topics": problem.topics,
        "partition_counts": problem.partition_counts,
        "members": problem.members,
        "weights": problem.weights,
    }


def _figures(assignment: Assignment) -> dict[str, Any]:
    return measure(assignment.problem, assignment).as_dict()


def _table(row: Mapping[str, Any]) -> pa.Table:
    """Return one row; arrays go in whole, not value by value."""
    return pa.table(
        {name: pa.array([value], CANDIDATES.field(name).type) for name, value in row.items()}
    )
