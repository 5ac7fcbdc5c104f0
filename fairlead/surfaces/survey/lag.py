"""The lag of a group as a survey reports it: a few figures, from its samples.

Belongs here: sums over partitions. Belongs elsewhere: the definitions of lag, lost records
and topics that a group has left (`fairlead.domain.samples.lag`).
"""

import math
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa

from fairlead.domain.analysis.sample_series import Int64
from fairlead.domain.samples.arrays import all_topics
from fairlead.domain.samples.lag import left_topics, partition_lag


def group_lag(samples: pa.Table, *, latest: bool) -> dict[str, Any]:
    """Add up the lag of a group.

    Parameters
    ----------
    samples
        The group's samples, by time; of the schema `fairlead.domain.samples.SAMPLES`.
    latest
        Whether the group's consumers start at the log's end if there is no commit.

    Returns
    -------
    About the topics that the group reads: partitions (their number); lag (in records); uncommitted
    (number of partitions without a commit); uncommitted_lag (lag of these partitions); lost
    (records that were deleted before they were read); lost_at (when a sample first showed the
    newest loss; null if none). About other topics: left (rows with topic, partitions and lag).
    """
    newest = samples[-1:].select(["topics", "counts", "subscriptions"]).to_pylist()[0]
    series = all_topics(samples, latest=latest)
    measured = partition_lag(series, lost_within_s=math.inf)
    left = left_topics(newest["topics"], newest["subscriptions"])
    topics = np.repeat(np.array(newest["topics"], object), np.array(newest["counts"], np.int64))
    read = ~np.isin(topics, sorted(left))
    uncommitted = read & (series.committed[-1] < 0)
    lost_at = measured.lost_at[read & (measured.lost > 0)]
    return {
        "partitions": int(read.sum()),
        "lag": _sum(measured.lag[read]),
        "uncommitted": int(uncommitted.sum()),
        "uncommitted_lag": _sum(measured.lag[uncommitted]),
        "lost": _sum(measured.lost[read]),
        "lost_at": datetime.fromtimestamp(lost_at.max(), UTC) if lost_at.size else None,
        "left": [
            {
                "topic": topic,
                "partitions": int((topics == topic).sum()),
                "lag": _sum(measured.lag[topics == topic]),
            }
            for topic in sorted(left)
        ],
    }


def _sum(records: Int64) -> int:
    """Add up records in Python, since the sum may exceed int64."""
    return sum(records.tolist())
