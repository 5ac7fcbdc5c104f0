"""The lag of groups as a survey reports it: a few figures a group, from its looks.

Belongs here: sums over partitions. Does not: what lag, losses and topics that a group has left are
(`fairlead.domain.looks.lag`).
"""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa

from fairlead.domain.judgement.looks import Int64
from fairlead.domain.looks.lag import left_topics, partition_lag
from fairlead.domain.looks.stacks import Stack, stacks

Row = dict[str, Any]


def group_lags(
    looks: Mapping[str, pa.Table],
    read: Mapping[str, Sequence[Sequence[str]]],
    latest: Collection[str],
) -> dict[str, Row]:
    """Add up the lag of each group.

    Parameters
    ----------
    looks
        Group to its looks, by time; of the schema `fairlead.domain.looks.look.LOOKS`.
    read
        Group to the topics that each of its members subscribes to.
    latest
        The groups whose consumers start at the log's end without a commit.

    Returns
    -------
    Group to its figures. Of the topics that it reads: partitions, a count; lag, records;
    uncommitted, partitions without a commit; uncommitted_lag, the lag of these; lost, records that
    were deleted before they were read; lost_at, when a look first saw the newest of them lost, null
    if none were. Of the others: left, a row of topic, partitions and lag for each.
    """
    return {
        name: figures for stack in stacks(looks, latest) for name, figures in _added(stack, read)
    }


def _added(stack: Stack, read: Mapping[str, Sequence[Sequence[str]]]) -> Iterator[tuple[str, Row]]:
    measured = partition_lag(stack.looks, stack.group_of, lost_within_s=math.inf)
    uncommitted = stack.looks.committed[-1] < 0
    first = 0
    for row in stack.newest.select(["group", "topics", "counts"]).to_pylist():
        places = dict[str, Int64]()
        for topic, count in zip(row["topics"], row["counts"], strict=True):
            places[topic] = np.arange(first, first + count)
            first += count
        left = left_topics(places, read.get(row["group"], ()))
        mine = np.concatenate(
            [np.empty(0, np.int64), *(places[t] for t in places if t not in left)]
        )
        lost_at = measured.lost_at[mine][measured.lost[mine] > 0]
        figures = {
            "partitions": mine.size,
            "lag": _sum(measured.lag[mine]),
            "uncommitted": int(uncommitted[mine].sum()),
            "uncommitted_lag": _sum(measured.lag[mine[uncommitted[mine]]]),
            "lost": _sum(measured.lost[mine]),
            "lost_at": datetime.fromtimestamp(lost_at.max(), UTC) if lost_at.size else None,
            "left": [
                {"topic": t, "partitions": places[t].size, "lag": _sum(measured.lag[places[t]])}
                for t in sorted(left)
            ],
        }
        yield row["group"], figures


def _sum(records: Int64) -> int:
    """Add up records, of which there may be more than int64 has room for."""
    return sum(records.tolist())
