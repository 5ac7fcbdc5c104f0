"""Recorded snapshots of made-up fleets: what the planner is measured on without a cluster.

Belongs here: groups of any number and size, with skewed lag, as the tables of a snapshot. Does not:
measuring (`fleet`).
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa

from fairlead.domain.looks.look import LOOKS, look_of
from fairlead.domain.snapshot import GROUPS, MEMBERS, OFFSETS, GroupSnapshot, new_snapshot_id

COHORT = "fleet"
IN_TOPIC, TOPICS_AT_MOST = 50, 100
#: Records behind of each partition of a level group, and of the heaviest one of a skewed group.
LEVEL, HEAVIEST = 1_000, 100_000
#: Records a second read of a partition: of a level group, of a member at its limit, of one at rest.
LEVEL_S, LIMIT_S, REST_S = 10, 20, 8
#: One in so many members of a skewed group is at its limit.
ONE_IN = 10


@dataclass(frozen=True)
class Size:
    """Groups alike: so many, of so many partitions and members each."""

    groups: int
    partitions: int
    members: int

    @property
    def in_topic(self) -> int:
        """Partitions of a topic, all but the last one."""
        return max(IN_TOPIC, -(-self.partitions // TOPICS_AT_MOST))

    @property
    def topics(self) -> int:
        """How many topics a group reads."""
        return -(-self.partitions // self.in_topic)


def every_third(number: int) -> bool:
    """Whether the group of a number is level, unless somebody says otherwise."""
    return number % 3 == 0


def snapshot(
    sizes: Sequence[Size],
    *,
    at: datetime | None = None,
    seed: int = 1,
    level: Callable[[int], bool] = every_third,
) -> GroupSnapshot:
    """Make the snapshot of a fleet, all of one cohort.

    A group reads topics of its own, of `IN_TOPIC` partitions, or of more where these would be more
    than `TOPICS_AT_MOST` topics. Its members own them in turns. One in `ONE_IN` of them has fallen
    behind: the lag of its partitions is Zipf's, shuffled. Level groups have nobody behind.

    Parameters
    ----------
    sizes
        Of the groups.
    at
        When it was taken; None: now.
    seed
        Decides the lags.
    level
        Which groups are level, by their numbers.
    """
    at = at or datetime.now(UTC)
    snapshot_id = new_snapshot_id(at)
    rng = np.random.default_rng(seed)
    groups = [
        (f"group-{place:04}-{number:05}", size)
        for place, size in enumerate(sizes)
        for number in range(size.groups)
    ]
    offsets = [
        _offsets(name, size, level=level(number), rng=rng)
        for number, (name, size) in enumerate(groups)
    ]
    members = [row for name, size in groups for row in _members(name, size)]
    key = {"snapshot_id": snapshot_id, "snapshot_at": at}
    return GroupSnapshot(
        snapshot_id=snapshot_id,
        snapshot_at=at,
        spread_s=0.0,
        offsets=_keyed(pa.concat_tables(offsets), key, OFFSETS),
        members=_keyed(pa.Table.from_pylist(members), key, MEMBERS),
        groups=_keyed(pa.Table.from_pylist([_group(name) for name, _ in groups]), key, GROUPS),
    )


def past(taken: GroupSnapshot) -> Iterator[tuple[str, pa.Table]]:
    """Make the looks of a day before a snapshot: every 5 minutes in the last hour, else a quarter.

    Half of the lag of those that fall behind has come about in the last hour.

    Yields
    ------
    Id and rows of each look, the oldest first.
    """
    now = look_of(taken)
    end, committed = (now[name].combine_chunks() for name in ("end", "committed"))
    lag = end.flatten().to_numpy() - committed.flatten().to_numpy()
    level = lag == LEVEL
    read_s = np.select([level, lag > 0], [LEVEL_S, LIMIT_S], REST_S)
    ages = [*range(24 * 60, 60, -15), *range(60, 0, -5)]
    for minutes in ages:
        stands = committed.flatten().to_numpy() - read_s * 60 * minutes
        waits = np.where(level, lag, lag * (1 - min(minutes, 60) / 120)).astype(np.int64)
        at = taken.snapshot_at - timedelta(minutes=minutes)
        columns = {
            "at": pa.repeat(pa.scalar(at, LOOKS.field("at").type), now.num_rows),
            "end": pa.ListArray.from_arrays(end.offsets, stands + waits),
            "committed": pa.ListArray.from_arrays(committed.offsets, stands),
        }
        rows = now
        for name, values in columns.items():
            rows = rows.set_column(LOOKS.get_field_index(name), LOOKS.field(name), values)
        yield new_snapshot_id(at), rows


def _offsets(name: str, size: Size, *, level: bool, rng: np.random.Generator) -> pa.Table:
    numbers = np.arange(size.partitions)
    zipf = (HEAVIEST / (1 + rng.permutation(size.partitions))).astype(np.int64)
    behind = numbers % size.members % ONE_IN == 0
    lag = np.full(size.partitions, LEVEL) if level else np.where(behind, zipf, 0)
    topics = pa.DictionaryArray.from_arrays(
        pa.array((numbers // size.in_topic).astype(np.int32)),
        [f"{name}-{topic}" for topic in range(size.topics)],
    )
    return pa.table(
        {
            "group": pa.repeat(name, size.partitions),
            "topic": topics.cast(pa.string()),
            "partition": pa.array((numbers % size.in_topic).astype(np.int32)),
            "begin_offset": pa.repeat(0, size.partitions),
            "end_offset": 5_000_000 + lag,
            "committed_offset": pa.repeat(5_000_000, size.partitions),
        }
    )


def _members(name: str, size: Size) -> list[dict[str, object]]:
    topics = [f"{name}-{topic}" for topic in range(size.topics)]
    return [
        {
            "group": name,
            "member_id": f"id-{member}",
            "client_id": f"{name}-{member}",
            "host": "/127.0.0.1",
            "member": f"{name}-{member:04}",
            "topics": topics,
            "partitions": [
                {"topic": topics[number // size.in_topic], "partition": number % size.in_topic}
                for number in range(member, size.partitions, size.members)
            ],
        }
        for member in range(size.members)
    ]


def _group(name: str) -> dict[str, str]:
    return {
        "group": name,
        "cohort": COHORT,
        "state": "Stable",
        "protocol_type": "consumer",
        "protocol": "range",
    }


def _keyed(rows: pa.Table, key: dict[str, object], schema: pa.Schema) -> pa.Table:
    """Give the rows a schema's columns: the key's values, and null for what is missing."""
    columns = []
    for field in schema:
        if field.name in rows.column_names:
            columns.append(rows[field.name].cast(field.type))
        else:
            value = pa.scalar(key.get(field.name), field.type)
            columns.append(pa.repeat(value, rows.num_rows))
    return pa.table(columns, schema=schema)
