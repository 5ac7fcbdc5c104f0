"""A made-up week of a consumer group whose skew drifts, for the backtest in docs/backtest.md.

`python -m benchmarks.backtest FOLDER` writes it as a warehouse of snapshots; then
`FAIRLEAD_WAREHOUSE=FOLDER fairlead backtest orders` replays it.
Belongs here: the week. Does not: the backtest (`fairlead.backtest`).
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from assignors.assignment import Assignment
from assignors.problem import Problem
from assignors.registry import assign
from fairlead.kafka.snapshot import GROUPS, MEMBERS
from fairlead.spark.warehouse import Warehouse

GROUP = "orders"
MONDAY = datetime(2026, 1, 5, tzinfo=UTC)
STEP = timedelta(minutes=10)
SNAPSHOTS = timedelta(days=7) // STEP
TOPICS = {"orders": 40, "payments": 30, "returns": 10, "shipments": 20}
PARTITIONS = sum(TOPICS.values())
RECORDS_PER_S = 10_000.0  # of all partitions together, averaged over a day
MEMBER_PER_S = 1_600.0  # what one member can work off
UNDER_WAY_S = 30.0  # a poll and a commit


@dataclass(frozen=True, eq=False)
class Moment:
    """A snapshot: when, the group's range assignment, lags and arrival rates of shape (P,)."""

    at: datetime
    assignment: Assignment
    lags: npt.NDArray[np.int64]
    rates: npt.NDArray[np.float64]


def members_at(hour: float) -> list[str]:
    """Ten members; two join on Wednesday noon, the first leaves on Saturday."""
    first, end = int(hour >= 5 * 24), 12 if hour >= 2.5 * 24 else 10
    return [f"{GROUP}-{number:02}" for number in range(first, end)]


def week(seed: int = 1) -> Iterator[Moment]:
    """Let the group run for a week, under Kafka's `range`.

    Partitions' popularity is Zipf's and wanders; the load follows the day. A member works off what
    it can, from all its partitions alike. What is left is lag, with what is always under way.
    """
    rng = np.random.default_rng(seed)
    popularity = rng.permutation(-0.7 * np.log(np.arange(1, PARTITIONS + 1)))
    backlog = np.zeros(PARTITIONS)
    for number in range(SNAPSHOTS):
        hour = number * STEP / timedelta(hours=1)
        popularity = 0.999 * popularity + rng.normal(0, 0.04, PARTITIONS)
        by_day = 1 - 0.6 * np.cos(2 * np.pi * hour / 24)
        rates = RECORDS_PER_S * by_day * np.exp(popularity) / np.exp(popularity).sum()
        members = members_at(hour)
        problem = Problem.of(TOPICS, {member: tuple(TOPICS) for member in members})
        assignment = assign("range", problem)
        backlog += rates * STEP.total_seconds()
        loads = np.bincount(assignment.owner, weights=backlog, minlength=len(members))
        worked_off = np.minimum(1, MEMBER_PER_S * STEP.total_seconds() / loads)
        backlog *= 1 - worked_off[assignment.owner]
        lags = (backlog + UNDER_WAY_S * rates).astype(np.int64)
        yield Moment(MONDAY + number * STEP, assignment, lags, rates)


def record(moment: Moment, warehouse: Warehouse) -> None:
    """Write a snapshot as the planner would have, but for columns that nothing here reads."""
    problem = moment.assignment.problem
    snapshot_id = f"{moment.at:%Y%m%dT%H%M%S.%fZ}-00000000"
    key = {"snapshot_id": snapshot_id, "group": GROUP}
    members = [
        {
            "member": member,
            "topics": list(problem.topics),
            "partitions": [
                {"topic": topic, "partition": number}
                for topic, numbers in share.items()
                for number in numbers
            ],
        }
        for member, share in moment.assignment.by_member().items()
    ]
    numbers = np.arange(PARTITIONS) - problem.topic_offsets[problem.topic_of]
    lag = pa.table(
        {
            **{name: pa.repeat(value, PARTITIONS) for name, value in key.items()},
            "topic": np.array(problem.topics)[problem.topic_of],
            "partition": pa.array(numbers, pa.int32()),
            "lag": moment.lags,
            "arrival_rate": moment.rates,
            "status": pa.repeat("OK", PARTITIONS),
        }
    )
    warehouse.write("lag", snapshot_id, lag)
    members_table = pa.Table.from_pylist([key | member for member in members], MEMBERS)
    warehouse.write("members", snapshot_id, members_table)
    groups = pa.Table.from_pylist([key | {"snapshot_at": moment.at}], GROUPS)
    warehouse.write("groups", snapshot_id, groups)


def main(folder: str) -> None:
    """Write the week to a folder."""
    warehouse = Warehouse(folder)
    for moment in week():
        record(moment, warehouse)
    print(f"{SNAPSHOTS:,} snapshots of {PARTITIONS} partitions: {folder}")


if __name__ == "__main__":
    main(sys.argv[1])
