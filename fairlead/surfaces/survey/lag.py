"""The lag of groups as a survey reports it: a few figures a group, from its samples.

Belongs here: sums over partitions. Does not: what lag, losses and topics that a group has left are
(`fairlead.domain.samples.lag`).
"""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import numpy as np
import pyarrow as pa

from fairlead.domain.analysis.sample_series import Int64, SampleSeries
from fairlead.domain.samples.arrays import alike, all_topics
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
    series = {name: all_topics(rows, latest=name in latest) for name, rows in samples.items()}
    return {
        name: figures
        for names, side_by_side in alike(series)
        for name, figures in _added(names, samples, side_by_side)
    }


def _added(
    names: Sequence[str], samples: Mapping[str, pa.Table], series: SampleSeries
) -> Iterator[tuple[str, Row]]:
    newest = [
        samples[name].slice(samples[name].num_rows - 1).select(_TOPICS).to_pylist()[0]
        for name in names
    ]
    group_of = np.repeat(np.arange(len(names)), [sum(row["counts"]) for row in newest])
    measured = partition_lag(series, group_of, lost_within_s=math.inf)
    uncommitted = series.committed[-1] < 0
    first = 0
    for name, row in zip(names, newest, strict=True):
        places = dict[str, Int64]()
        for topic, count in zip(row["topics"], row["counts"], strict=True):
            places[topic] = np.arange(first, first + count)
            first += count
        unread_topics = left_topics(places, row["subscriptions"])
        subscribed = np.concatenate(
            [np.empty(0, np.int64), *(places[t] for t in places if t not in unread_topics)]
        )
        lost_at = measured.lost_at[subscribed][measured.lost[subscribed] > 0]
        figures = {
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
        yield name, figures


def _sum(records: Int64) -> int:
    """Add up records; the sum may exceed int64."""
    return sum(records.tolist())
