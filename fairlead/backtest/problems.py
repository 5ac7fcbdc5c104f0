"""A recorded group's assignment problem, from rows of its lag.

Belongs here: laying recorded lag and members out as a `Problem`. Does not: reading them (`spark`).
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from assignors.problem import Member, Problem


def group_problem(roster: pa.Table, loads: pa.Table) -> Problem:
    """Build the problem of the topics that somebody reads.

    Parameters
    ----------
    roster, loads
        Of one group in one snapshot: a row a member, with the columns of the members' table; a row
        a partition, with topic, partition, weight and arrival_rate (null: unknown, taken for 0).

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
