"""The lag of groups as a survey reports it: a few figures a group, from its samples.

Belongs here: sums over partitions. Does not: what lag, losses and topics that a group has left are
(`fairlead.domain.samples.lag`).
"""

import math
from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from typing import Any, Final

import numpy as np
import pyarrow as pa

from fairlead.domain.analysis.sample_series import Int64
from fairlead.domain.samples.arrays import all_topics
from fairlead.domain.samples.lag import left_topics, partition_lag

Row = dict[str, Any]
_TOPICS: Final = ["topics", "counts", "subscriptions"]


def group_lags(samples: Mapping[str, pa.Table], latest: Collection[str]) -> dict[str, Row]:
    """Add up the lag of each group.

    Parameters
    ----------
    samples
        Group to its samples, by time; of the schema `fairlead.domain.samples.SAMPLES`.
    latest
        The groups whose consumers start at the log's end without a commit.

    Returns
    -------
    Group to its figures. Of the topics that it reads: partitions, a count; lag, records;
    uncommitted, partitions without a commit; uncommitted_lag, the lag of these; lost, records that
    were deleted before they were read; lost_at, time of the sample that first saw the newest
    loss, null if none. Of other topics: left, a row of topic, partitions and lag for each.
    """
    return {name: _figures(rows, latest=name in latest) for name, rows in samples.items()}


def _figures(samples: pa.Table, *, latest: bool) -> Row:
    series = all_topics(samples, latest=latest)
    (newest,) = samples.slice(samples.num_rows - 1).select(_TOPICS).to_pylist()
    measured = partition_lag(series, lost_within_s=math.inf)
    uncommitted = series.committed[-1] < 0
    places, first = dict[str, Int64](), 0
    for topic, count in zip(newest["topics"], newest["counts"], strict=True):
        places[topic] = np.arange(first, first + count)
        first += count
    unread_topics = left_topics(places, newest["subscriptions"])
    subscribed = np.concatenate(
        [np.empty(0, np.int64), *(places[t] for t in places if t not in unread_topics)]
    )
    lost_at = measured.lost_at[subscribed][measured.lost[subscribed] > 0]
    return {
        "partitions": subscribed.size,
        "lag": _sum(measured.lag[subscribed]),
        "uncommitted": int(uncommitted[subscribed].sum()),
        "uncommitted_lag": _sum(measured.lag[subscribed[uncommitted[subscribed]]]),
        "lost": _sum(measured.lost[subscribed]),
        "lost_at": datetime.fromtimestamp(lost_at.max(), UTC) if lost_at.size else None,
        "left": [
            {"topic": t, "partitions": places[t].size, "lag": _sum(measured.lag[places[t]])}
            for t in sorted(unread_topics)
        ],
    }


def _sum(records: Int64) -> int:
    """Add up records; the sum may exceed int64."""
    return sum(records.tolist())
