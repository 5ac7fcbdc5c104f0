"""Snapshots of made-up fleets, for measuring the planner without a cluster.

Belongs here: samples of any number of groups of any size, with skewed lag. Belongs elsewhere:
measuring (`fleet`).
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa

from fairlead.common.tables import as_array
from fairlead.domain.advice import CLASSIC
from fairlead.domain.samples import SAMPLES, GroupSnapshot, flat, new_snapshot_id

COHORT = "fleet"
IN_TOPIC, TOPICS_AT_MOST = 50, 100
#: Lag of every partition in a level group (LEVEL), and largest lag of a partition in a skewed group
#: (HEAVIEST).
LEVEL, HEAVIEST = 1_000, 100_000
#: Committed offset of every partition.
STANDS = 5_000_000
#: Records per second that a member reads from each partition: LEVEL_S in a level group; in a skewed
#: group, LIMIT_S if the member is at the limit of its speed, otherwise REST_S.
LEVEL_S, LIMIT_S, REST_S = 10, 20, 8
#: In a skewed group, one in this number of members reads at the limit of its speed.
ONE_IN = 10


@dataclass(frozen=True)
class Size:
    """The number of groups, and the number of partitions and members of each."""

    groups: int
    partitions: int
    members: int

    @property
    def in_topic(self) -> int:
        """Number of partitions of each topic except the last."""
        return max(IN_TOPIC, -(-self.partitions // TOPICS_AT_MOST))

    @property
    def topics(self) -> int:
        """Number of topics that a group reads."""
        return -(-self.partitions // self.in_topic)


def every_third(number: int) -> bool:
    """Return whether a number is a multiple of three; by default, these are the level groups."""
    return number % 3 == 0


def snapshot(
    sizes: Sequence[Size],
    *,
    at: datetime | None = None,
    seed: int = 1,
    level: Callable[[int], bool] = every_third,
) -> GroupSnapshot:
    """Make the snapshot of a fleet of level and skewed groups.

    A group reads its own topics. Topics have `IN_TOPIC` partitions, or more if the group would have
    more than `TOPICS_AT_MOST` topics. Partitions are assigned round-robin. In a skewed group, one
    of `ONE_IN` members is behind, and the lags of its partitions follow Zipf's law in random order.
    In a level group, all partitions have the same lag.

    Parameters
    ----------
    sizes
        Sizes of the groups.
    at
        Time of the snapshot; None: now.
    seed
        Seed of the lags.
    level
        Called with a group's number; returns whether the group is level.
    """
    at = at or datetime.now(UTC)
    snapshot_id = new_snapshot_id(at)
    rng = np.random.default_rng(seed)
    groups = [
        (f"group-{place:04}-{number:05}", size)
        for place, size in enumerate(sizes)
        for number in range(size.groups)
    ]
    rows = [
        {"sample_id": snapshot_id, "at": at} | _sample(name, size, level=level(number), rng=rng)
        for number, (name, size) in enumerate(groups)
    ]
    return GroupSnapshot(snapshot_id, at, 0.0, pa.Table.from_pylist(rows, SAMPLES))


def past(taken: GroupSnapshot) -> Iterator[tuple[str, pa.Table]]:
    """Yield samples of the day before a snapshot.

    They are 15 minutes apart, but 5 minutes in the last hour. In a skewed group, the lag of members
    that are behind doubles during the last hour; before that, it is constant.

    Yields
    ------
    Id and rows of each sample, the oldest first.
    """
    now = taken.samples
    starts, committed = as_array(now["end"]).offsets, flat(now["committed"])
    lag = flat(now["end"]) - committed
    level = lag == LEVEL
    read_s = np.select([level, lag > 0], [LEVEL_S, LIMIT_S], REST_S)
    for minutes in [*range(24 * 60, 60, -15), *range(60, 0, -5)]:
        stands = committed - read_s * 60 * minutes
        waits = np.where(level, lag, lag * (1 - min(minutes, 60) / 120)).astype(np.int64)
        at = taken.snapshot_at - timedelta(minutes=minutes)
        sample_id = new_snapshot_id(at)
        columns = {
            "sample_id": pa.repeat(sample_id, now.num_rows),
            "at": pa.repeat(pa.scalar(at, SAMPLES.field("at").type), now.num_rows),
            "end": pa.ListArray.from_arrays(starts, stands + waits),
            "committed": pa.ListArray.from_arrays(starts, stands),
        }
        rows = now
        for name, values in columns.items():
            rows = rows.set_column(SAMPLES.get_field_index(name), SAMPLES.field(name), values)
        yield sample_id, rows


def _sample(name: str, size: Size, *, level: bool, rng: np.random.Generator) -> dict[str, Any]:
    numbers, members = np.arange(size.partitions), range(size.members)
    zipf = (HEAVIEST / (1 + rng.permutation(size.partitions))).astype(np.int64)
    behind = numbers % size.members % ONE_IN == 0
    lag = np.full(size.partitions, LEVEL) if level else np.where(behind, zipf, 0)
    topics = [f"{name}-{topic:02}" for topic in range(size.topics)]
    return {
        "group": name,
        "state": "Stable",
        "protocol": "range",
        "group_type": CLASSIC,
        "topics": topics,
        "topic_ids": [None] * size.topics,
        "counts": np.bincount(numbers // size.in_topic),
        "begin": np.zeros_like(numbers),
        "end": STANDS + lag,
        "committed": np.full_like(numbers, STANDS),
        "owner": numbers % size.members,
        "members": [f"{name}-{member:04}" for member in members],
        "member_ids": [f"id-{member}" for member in members],
        "client_ids": [f"{name}-{member}" for member in members],
        "instance_ids": [None] * size.members,
        "member_racks": [None] * size.members,
        "generations": [None] * size.members,
        "subscriptions": [topics] * size.members,
    }
