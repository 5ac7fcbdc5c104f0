"""A snapshot of consumer groups: three tables, as Parquet keeps them and Spark reads them.

Belongs here: the tables' columns, and filling them from what brokers answered. Does not: asking the
brokers (`fairlead.kafka.gateway`), nor any arithmetic on offsets (`fairlead.domain.looks.lag`).
"""

import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fairlead.common.tables import named
from fairlead.domain.groups import (
    CommittedOffsets,
    FetchSources,
    GroupDescription,
    LiveMember,
    LogOffsets,
    TopicCommits,
)

_OF_SOURCES: Final = ("racks", "log_bytes")
_TIME: Final = pa.timestamp("us", tz="UTC")

OFFSETS: Final = pa.schema(
    {
        "snapshot_id": pa.string(),
        "snapshot_at": _TIME,
        "group": pa.string(),
        "topic": pa.string(),
        "partition": pa.int32(),
        "begin_offset": pa.int64(),
        "end_offset": pa.int64(),
        "committed_offset": pa.int64(),
        "stable_offset": pa.int64(),
        "error": pa.string(),
        "racks": pa.list_(pa.string()),
        "log_bytes": pa.int64(),
    }
)
"""One row a partition of the topics that a group reads or has committed; ascending.

`stable_offset` is the last stable offset: records from there on belong to an open transaction. It
is read only for partitions that stand still (`fairlead.kafka.stable_ends`), and null elsewhere.

`racks` are those that consumers may fetch it from, and `log_bytes` is the size of its log: both are
null where they are not known, and where no member names a rack nobody asks.
"""

MEMBERS: Final = pa.schema(
    {
        "snapshot_id": pa.string(),
        "group": pa.string(),
        "member_id": pa.string(),
        "client_id": pa.string(),
        "host": pa.string(),
        "instance_id": pa.string(),
        "member": pa.string(),
        "topics": pa.list_(pa.string()),
        "partitions": pa.list_(pa.struct({"topic": pa.string(), "partition": pa.int32()})),
        "generation": pa.int32(),
        "rack": pa.string(),
    }
)
"""One row a member; `member` is the name plans use. Ascending by group and name."""

GROUPS: Final = pa.schema(
    {
        "snapshot_id": pa.string(),
        "snapshot_at": _TIME,
        "group": pa.string(),
        "cohort": pa.string(),
        "state": pa.string(),
        "protocol_type": pa.string(),
        "protocol": pa.string(),
        "group_type": pa.string(),
        "topic_ids": pa.list_(pa.struct({"topic": pa.string(), "id": pa.string()})),
        "error": pa.string(),
    }
)
"""One row a group that was asked for, whatever became of it; `error`: it cannot be planned."""


@dataclass(frozen=True, eq=False)
class GroupSnapshot:
    """Consumer groups at one moment.

    Parameters
    ----------
    snapshot_id
        Sorts by time; safe in paths.
    snapshot_at
        When the end offsets were asked for; time-zone-aware.
    spread_s
        Seconds from the first committed offset asked for to the last end offset received: how far
        apart in time the offsets of one row can be.
    offsets, members, groups
        Tables of the schemas `OFFSETS`, `MEMBERS` and `GROUPS`.
    """

    snapshot_id: str
    snapshot_at: datetime
    spread_s: float
    offsets: pa.Table
    members: pa.Table
    groups: pa.Table

    @property
    def tables(self) -> dict[str, pa.Table]:
        """The tables by name."""
        return {"offsets": self.offsets, "members": self.members, "groups": self.groups}


def new_snapshot_id(at: datetime) -> str:
    """Return an id that sorts by time: `20260131T120000.000000Z-5f3a9c1e`."""
    return f"{snapshot_id_at(at)}-{secrets.token_hex(4)}"


def snapshot_id_at(at: datetime) -> str:
    """Return what the ids of that moment begin with: those of earlier snapshots sort before it."""
    return f"{at:%Y%m%dT%H%M%S.%fZ}"


def taken_at(snapshot_id: str) -> datetime:
    """Return when a snapshot was taken, by its id.

    Examples
    --------
    >>> taken_at("20260131T120000.000000Z-5f3a9c1e").isoformat()
    '2026-01-31T12:00:00+00:00'
    """
    at, _, _ = snapshot_id.partition("-")
    return datetime.strptime(at, "%Y%m%dT%H%M%S.%fZ").replace(tzinfo=UTC)


def build_snapshot(
    *,
    snapshot_id: str,
    snapshot_at: datetime,
    spread_s: float,
    descriptions: Mapping[str, GroupDescription],
    cohorts: Mapping[str, str],
    committed: Mapping[str, CommittedOffsets],
    log: LogOffsets,
    sources: FetchSources | None = None,
) -> GroupSnapshot:
    """Fill the tables of a snapshot.

    Parameters
    ----------
    descriptions, committed
        Group to its members; to its commits, of the groups whose commits could be read.
    cohorts
        Group to cohort; a group that is missing is a cohort of its own.
    log
        Begin and end of every partition of the topics involved.
    sources
        Where the same partitions are fetched from; None: nobody asked.
    """
    names = sorted(descriptions)
    blocks = [block for name in names for block in _blocks(name, descriptions, committed, log)]
    problems = {name: _problem(name, descriptions[name], log) for name in names}
    return GroupSnapshot(
        snapshot_id=snapshot_id,
        snapshot_at=snapshot_at,
        spread_s=spread_s,
        offsets=_offsets_table(blocks, log, sources, snapshot_id, snapshot_at),
        members=pa.Table.from_pylist(
            [
                _member_row(snapshot_id, name, member)
                for name in names
                for member in descriptions[name].members
            ],
            MEMBERS,
        ),
        groups=pa.Table.from_pylist(
            [
                {
                    "snapshot_id": snapshot_id,
                    "snapshot_at": snapshot_at,
                    "group": name,
                    "cohort": cohorts.get(name, name),
                    "state": descriptions[name].state,
                    "protocol_type": descriptions[name].protocol_type,
                    "protocol": descriptions[name].protocol,
                    "group_type": descriptions[name].group_type,
                    "topic_ids": [
                        {"topic": topic, "id": text}
                        for topic, text in sorted(descriptions[name].topic_ids.items())
                    ],
                    "error": problems[name],
                }
                for name in names
            ],
            GROUPS,
        ),
    )


@dataclass(frozen=True, eq=False)
class _Block:
    """The rows of one topic in one group.

    Parameters
    ----------
    partitions, committed
        int32 and int64 of shape (K,); committed -1: nothing is.
    index
        Where each partition stands in the log's arrays, int64 of shape (K,); -1: nowhere, it does
        not exist.
    """

    group: str
    topic: str
    partitions: npt.NDArray[np.int32]
    committed: npt.NDArray[np.int64]
    index: npt.NDArray[np.int64]


def _blocks(
    group: str,
    descriptions: Mapping[str, GroupDescription],
    committed: Mapping[str, CommittedOffsets],
    log: LogOffsets,
) -> Iterable[_Block]:
    commits = committed.get(group, {})
    subscribed = {topic for member in descriptions[group].members for topic in member.topics}
    nothing = TopicCommits(np.empty(0, np.int32), np.empty(0, np.int64), ())
    for topic in sorted(subscribed | set(commits)):
        numbers, positions, _ = commits.get(topic, nothing)
        first, count = log.place(topic)
        gone = numbers >= count
        partitions = np.concatenate((np.arange(count, dtype=np.int32), numbers[gone]))
        offsets = np.full(partitions.size, -1, dtype=np.int64)
        offsets[numbers[~gone]] = positions[~gone]
        offsets[count:] = positions[gone]
        index = np.full(partitions.size, -1, dtype=np.int64)
        index[:count] = np.arange(first, first + count)
        yield _Block(group, topic, partitions, offsets, index)


def _offsets_table(
    blocks: Sequence[_Block],
    log: LogOffsets,
    sources: FetchSources | None,
    snapshot_id: str,
    snapshot_at: datetime,
) -> pa.Table:
    lengths = [block.partitions.size for block in blocks]
    total = sum(lengths)
    index = _joined([block.index for block in blocks], np.int64)
    # A partition without a place in the log takes the values appended behind it.
    begin = np.append(log.begin, -1)[index]
    end = np.append(log.end, -1)[index]
    error = np.append(log.error, LogOffsets.GONE)[index]
    columns = {
        "snapshot_id": pa.repeat(pa.scalar(snapshot_id), total),
        "snapshot_at": pa.repeat(pa.scalar(snapshot_at, _TIME), total),
        "group": _repeated([block.group for block in blocks], lengths),
        "topic": _repeated([block.topic for block in blocks], lengths),
        "partition": pa.array(_joined([block.partitions for block in blocks], np.int32)),
        "begin_offset": _nullable(begin),
        "end_offset": _nullable(end),
        "committed_offset": _nullable(_joined([block.committed for block in blocks], np.int64)),
        "stable_offset": pa.nulls(total, pa.int64()),
        "error": named(error, log.error_texts),
        **_source_columns(sources, index),
    }
    return pa.table(columns, schema=OFFSETS)


def _source_columns(
    sources: FetchSources | None, index: npt.NDArray[np.int64]
) -> dict[str, pa.Array]:
    """Return the columns `racks` and `log_bytes` of partitions by their place in the log."""
    if sources is None:
        return {name: pa.nulls(index.size, OFFSETS.field(name).type) for name in _OF_SOURCES}
    rack_set = np.append(sources.rack_set, -1)[index]
    sets = pa.array([list(racks) for racks in sources.rack_sets], pa.list_(pa.string()))
    racks = sets.take(pa.array(rack_set, mask=rack_set < 0))
    return {"racks": racks, "log_bytes": _nullable(np.append(sources.log_bytes, -1)[index])}


def _joined(arrays: Sequence[npt.NDArray[Any]], kind: type[np.generic]) -> npt.NDArray[Any]:
    return np.concatenate(arrays) if arrays else np.empty(0, kind)


def _repeated(names: Sequence[str], lengths: Sequence[int]) -> pa.Array:
    return named(np.repeat(np.arange(len(names), dtype=np.int32), lengths), names)


def _nullable(values: npt.NDArray[np.int64]) -> pa.Array:
    return pa.array(values, mask=values < 0)


def _problem(group: str, description: GroupDescription, log: LogOffsets) -> str | None:
    """Say why a group cannot be planned, its own reason first; None: it can."""
    if description.error:
        return description.error
    subscribed = {topic for member in description.members for topic in member.topics}
    for topic in sorted(subscribed):
        if topic in log.unreadable:
            return f"Topic {topic} of group {group} cannot be read: {log.unreadable[topic]}"
    return None


def _member_row(snapshot_id: str, group: str, member: LiveMember) -> dict[str, Any]:
    return {
        "snapshot_id": snapshot_id,
        "group": group,
        "member_id": member.member_id,
        "client_id": member.client_id,
        "host": member.host,
        "instance_id": member.instance_id,
        "member": member.name,
        "topics": member.topics,
        "partitions": [
            {"topic": topic, "partition": partition}
            for topic, partitions in member.partitions.items()
            for partition in partitions
        ],
        "generation": member.generation,
        "rack": member.rack,
    }
