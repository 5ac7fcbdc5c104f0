"""The table of samples: the state of consumer groups, one row for each group and time.

Belongs here: the columns, filling them from the responses of brokers, and reading them by
partition. The modules `arrays`, `lag` and `questions` convert samples for the analysis. Belongs
elsewhere: requests to brokers (`fairlead.kafka.gateway`), storing samples
(`fairlead.archive`), and analysing them (`fairlead.domain.analysis`).

A row has lists for the group's topics, partitions and members, so that a sample of all groups has
thousands of rows, not millions. Example: topic a has two partitions, topic b has three::

    topics   a        b                  members  m, n
    counts   2        3
    place    0   1    2   3   4
    is       a-0 a-1  b-0 b-1 b-2
    end      40  52   7   9   -1         the end of b-2 is not known
    owner    0   1    1   0   -1         n owns a-1 and b-0
"""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from assignors.claims import effective_owner
from fairlead.common.tables import as_array, named
from fairlead.domain.groups import (
    CommittedOffsets,
    FetchSources,
    GroupDescription,
    LiveMember,
    LogOffsets,
)
from fairlead.domain.samples.work_columns import OF_MEMBERS, OF_PARTITIONS, lists, work_columns

#: Value in place of an offset or owner that is missing or unknown.
NONE: Final = -1
_TIME: Final = pa.timestamp("us", tz="UTC")
_TEXTS: Final = pa.list_(pa.string())
_OFFSETS: Final = pa.list_(pa.int64())
_NUMBERS: Final = pa.list_(pa.int32())

Codes = npt.NDArray[np.int64]


class Column(NamedTuple):
    """A column: its name, its type, and its meaning with the unit."""

    name: str
    kind: pa.DataType
    meaning: str


#: All columns. Lists with a value per partition are ordered by topic.
COLUMNS: Final = (
    Column("group", pa.string(), "consumer group"),
    Column(
        "sample_id", pa.string(), "id of the sample, the same for all its groups; sorts by time"
    ),
    Column("at", _TIME, "when the end offsets were asked for"),
    Column("state", pa.string(), "state of the group: `Stable`, `Empty`, ..."),
    Column("protocol", pa.string(), "name of the assignor in use"),
    Column("group_type", pa.string(), "`classic` or `consumer`"),
    Column("error", pa.string(), "why the group cannot be planned; null if it can be planned"),
    Column("topics", _TEXTS, "existing topics that a member subscribes to or the group committed"),
    Column("topic_ids", _TEXTS, "id of each topic, null if the coordinator does not return it"),
    Column("counts", _NUMBERS, "partitions of each topic"),
    Column("begin", _OFFSETS, "first offset of each partition's log; -1: not known"),
    Column("end", _OFFSETS, "high watermark of each partition; -1: not known"),
    Column("committed", _OFFSETS, "committed offset of each partition; -1: none"),
    Column("stable_end", _OFFSETS, "last stable offset if the commit did not change; -1: not read"),
    Column("racks", pa.list_(_TEXTS), "sets of racks to fetch from; null: nothing is known"),
    Column("rack_set", _NUMBERS, "place in `racks` for each partition; -1: not known"),
    Column("log_bytes", _OFFSETS, "size of each partition's log in bytes; -1: not known"),
    Column("reporter", _NUMBERS, "index in `members` of the consumer that reported; -1: no report"),
    Column("report_records", _OFFSETS, "records of each partition that the reporter took"),
    Column("report_busy_ms", _OFFSETS, "milliseconds that it spent on these records"),
    Column("report_squares_ms2", _OFFSETS, "sum of the squares of the milliseconds per record"),
    Column("owner", _NUMBERS, "index of the owner in `members`; -1: no owner, or not known"),
    Column("members", _TEXTS, "names that plans use, ascending"),
    Column("member_ids", _TEXTS, "member id of each member, from the coordinator"),
    Column("client_ids", _TEXTS, "`client.id` of each member"),
    Column("instance_ids", _TEXTS, "`group.instance.id` of each member; null: it is not static"),
    Column("member_racks", _TEXTS, "`client.rack` of each member; null: not known"),
    Column("generations", _NUMBERS, "generation or epoch that each member reports; null: none"),
    Column("subscriptions", pa.list_(_TEXTS), "topics that each member subscribes to"),
    Column("tokens", _TEXTS, "changes when a member restarts; null: it reports no work"),
    Column("elapsed_ms", _OFFSETS, "milliseconds since each member was created; -1: no report"),
    Column("waiting_ms", _OFFSETS, "part of `elapsed_ms` in which it waited for records"),
    Column("handler_ms", _OFFSETS, "part of `elapsed_ms` spent in the application's code"),
    Column("calls", _OFFSETS, "calls of each member that returned records"),
    Column("paused", _OFFSETS, "number of paused partitions; 46655: times are unknown"),
    Column("reported_at_ms", _OFFSETS, "time of the report by its clock; milliseconds since 1970"),
)
SAMPLES: Final = pa.schema([(column.name, column.kind) for column in COLUMNS])
#: Columns that an analysis reads from a group's earlier samples.
HISTORY: Final = [
    *("group", "sample_id", "at", "error", "topics", "counts", "begin", "end", "committed"),
    *("stable_end", "racks", "rack_set", "log_bytes", "members", "owner"),
    *("reporter", *OF_PARTITIONS, "tokens", *OF_MEMBERS),
]
#: Columns with one value per member, and their names in `LiveMember`.
_OF_MEMBERS: Final = {
    "members": "name",
    "member_ids": "member_id",
    "client_ids": "client_id",
    "instance_ids": "instance_id",
    "member_racks": "rack",
    "generations": "generation",
    "subscriptions": "topics",
}
_OF_GROUPS: Final = ("state", "protocol", "group_type")


@dataclass(frozen=True, eq=False)
class GroupSnapshot:
    """A sample that was just taken.

    Parameters
    ----------
    snapshot_id
        The sample's id.
    snapshot_at
        Time at which the end offsets were requested; time-zone-aware.
    spread_s
        Largest possible difference in time between the offsets of a row, in seconds: from the first
        request for committed offsets to the last response with an end offset.
    samples
        Table of the schema `SAMPLES`, ascending by group.
    """

    snapshot_id: str
    snapshot_at: datetime
    spread_s: float
    samples: pa.Table


def new_snapshot_id(at: datetime) -> str:
    """Return a new id, such as `20260131T120000.000000Z-5f3a9c1e`. Ids sort by time."""
    return f"{snapshot_id_at(at)}-{secrets.token_hex(4)}"


def snapshot_id_at(at: datetime) -> str:
    """Return a text to compare with ids: ids of samples before `at` sort before the text."""
    return f"{at:%Y%m%dT%H%M%S.%fZ}"


def taken_at(snapshot_id: str) -> datetime:
    """Return the time of a sample, from its id.

    Raises
    ------
    ValueError
        The text is not the id of a sample.

    Examples
    --------
    >>> taken_at("20260131T120000.000000Z-5f3a9c1e").isoformat()
    '2026-01-31T12:00:00+00:00'
    """
    at, _, _ = snapshot_id.partition("-")
    return datetime.strptime(at, "%Y%m%dT%H%M%S.%fZ").replace(tzinfo=UTC)


def samples_of(
    *,
    sample_id: str,
    at: datetime,
    descriptions: Mapping[str, GroupDescription],
    committed: Mapping[str, CommittedOffsets],
    log: LogOffsets,
    sources: FetchSources | None = None,
) -> pa.Table:
    """Return the responses of brokers as rows of the table.

    Parameters
    ----------
    descriptions, committed
        Map each group to its description, and to its commits. Commits that could not be read are
        missing.
    log
        Begin and end offsets of all partitions of these topics.
    sources
        Racks from which these partitions can be fetched; None if not requested.

    Returns
    -------
    A table of the schema `SAMPLES`, ascending by group. Commits of partitions that no longer exist
    are left out. A group that could not be described has no members.
    """
    names = sorted(descriptions)
    groups = [descriptions[name] for name in names]
    topics = [_topics(described, committed.get(described.group, {}), log) for described in groups]
    blocks = [(group, topic) for group, mine in zip(groups, topics, strict=True) for topic in mine]
    places = [log.place(topic) for _, topic in blocks]
    index = np.concatenate(
        [np.empty(0, np.int64), *(np.arange(first, first + count) for first, count in places)]
    )
    block_starts = np.cumsum([0, *(count for _, count in places)])
    by_topic = np.cumsum([0, *map(len, topics)])
    by_partition = block_starts[by_topic]
    columns: dict[str, Any] = {
        "group": names,
        "sample_id": pa.repeat(pa.scalar(sample_id), len(names)),
        "at": pa.repeat(pa.scalar(at, _TIME), len(names)),
        **{name: [getattr(group, name) for group in groups] for name in _OF_GROUPS},
        "error": [_problem(group, log) for group in groups],
        "topics": lists(by_topic, pa.array([topic for _, topic in blocks], pa.string())),
        "topic_ids": lists(
            by_topic, pa.array([group.topic_ids.get(topic) for group, topic in blocks], pa.string())
        ),
        "counts": lists(by_topic, pa.array(np.diff(block_starts).astype(np.int32))),
        "begin": lists(by_partition, pa.array(log.begin[index])),
        "end": lists(by_partition, pa.array(log.end[index])),
        "committed": lists(by_partition, pa.array(_committed(blocks, block_starts, committed))),
        "stable_end": pa.nulls(len(names), _OFFSETS),
        **_sources(sources, index, by_partition),
        **work_columns(groups, blocks, block_starts, by_partition, committed),
        "owner": lists(by_partition, pa.array(_owners(groups, topics, by_topic, block_starts))),
        **{
            name: [[getattr(member, field) for member in group.members] for group in groups]
            for name, field in _OF_MEMBERS.items()
        },
    }
    return pa.table(columns, schema=SAMPLES)


def _topics(described: GroupDescription, commits: CommittedOffsets, log: LogOffsets) -> list[str]:
    """Return the existing topics to which a member subscribes or in which the group has commits."""
    read = {topic for member in described.members for topic in member.topics}
    return sorted(topic for topic in read | commits.keys() if topic in log.counts)


def _problem(described: GroupDescription, log: LogOffsets) -> str | None:
    """Return the error of a group or of one of its topics; None if the group can be planned."""
    if described.error:
        return described.error
    subscribed = {topic for member in described.members for topic in member.topics}
    for topic in sorted(subscribed & log.unreadable.keys()):
        return f"Topic {topic} of group {described.group} cannot be read: {log.unreadable[topic]}"
    return None


def _committed(
    blocks: Sequence[tuple[GroupDescription, str]],
    starts: Codes,
    committed: Mapping[str, CommittedOffsets],
) -> Codes:
    """Return the committed offset of each partition.

    A block is one topic of one group. `starts`: first partition of each block.
    """
    offsets = np.full(int(starts[-1]), NONE, dtype=np.int64)
    ends = starts.tolist()
    for (group, topic), start, end in zip(blocks, ends, ends[1:], strict=False):
        commits = committed.get(group.group, {}).get(topic)
        if commits is not None:
            exists = commits.partitions < end - start
            offsets[start + commits.partitions[exists]] = commits.offsets[exists]
    return offsets


def _owners(
    groups: Sequence[GroupDescription],
    topics: Sequence[Sequence[str]],
    by_topic: Codes,
    starts: Codes,
) -> npt.NDArray[np.int32]:
    """Return the owner of each partition: an index into the members of the partition's group.

    If several members report that they own a partition, its owner is the member with the newest
    generation. -1 if no member owns the partition, or if several have the newest generation.
    """
    partitions, members, generations = [], [], []
    for described, mine, first in zip(groups, topics, by_topic.tolist(), strict=False):
        block = {topic: first + number for number, topic in enumerate(mine)}
        for number, member in enumerate(described.members):
            for topic, owned in member.partitions.items():
                if topic not in block:
                    continue
                start, end = starts[block[topic] : block[topic] + 2].tolist()
                exists = [start + number for number in owned if start + number < end]
                partitions += exists
                members += [number] * len(exists)
                generations += [_generation(member)] * len(exists)
    return effective_owner(
        np.array(partitions, np.int64),
        np.array(members, np.int32),
        np.array(generations, np.int64),
        partition_total=int(starts[-1]),
    )


def _generation(member: LiveMember) -> int:
    return NONE if member.generation is None else member.generation


def _sources(sources: FetchSources | None, index: Codes, starts: Codes) -> dict[str, pa.Array]:
    """Return the columns of racks and log sizes; null for groups whose racks are unknown."""
    groups = starts.size - 1
    if sources is None:
        return {
            name: pa.nulls(groups, SAMPLES.field(name).type)
            for name in ("racks", "rack_set", "log_bytes")
        }
    codes = sources.rack_set[index].astype(np.int32)
    sets: list[list[tuple[str, ...]] | None] = []
    for first, last in zip(starts.tolist(), starts[1:].tolist(), strict=False):
        mine = codes[first:last]
        known = np.unique(mine[mine >= 0])
        codes[first:last] = np.where(mine >= 0, np.searchsorted(known, mine), NONE)
        sets.append([sources.rack_sets[place] for place in known.tolist()] or None)
    mask = pa.array([known_sets is None for known_sets in sets], pa.bool_())
    return {
        "racks": pa.array(sets, SAMPLES.field("racks").type),
        "rack_set": lists(starts, pa.array(codes), mask),
        "log_bytes": lists(starts, pa.array(sources.log_bytes[index]), mask),
    }


def with_stable_end(samples: pa.Table, stable: Codes) -> pa.Table:
    """Return samples with the last stable offsets added.

    Parameters
    ----------
    samples
        Samples. All rows together have P partitions.
    stable
        Last stable offset of each partition, int64 of shape (P,); -1: not read.
    """
    starts = list_starts(samples["end"])
    read = np.concatenate(([0], np.cumsum(stable >= 0)))
    nothing = pa.array(read[starts[1:]] == read[starts[:-1]], pa.bool_())
    column = lists(starts, pa.array(stable), nothing)
    return samples.set_column(SAMPLES.get_field_index("stable_end"), "stable_end", column)


def flat(column: pa.ChunkedArray) -> npt.NDArray[Any]:
    """Return the values of all lists of a column as one array, row after row."""
    values: npt.NDArray[Any] = as_array(column).flatten().to_numpy(zero_copy_only=False)
    return values


def list_starts(column: pa.ChunkedArray) -> Codes:
    """Return where each row begins in the result of `flat`, then the total length, (rows + 1,)."""
    offsets = as_array(column).offsets.to_numpy()
    begins: Codes = (offsets - offsets[0]).astype(np.int64)
    return begins


def by_partition(samples: pa.Table) -> pa.Table:
    """Return the samples as a table with a row for each partition, in the order of the lists.

    Returns
    -------
    Columns group, topic, partition, begin, end, committed (-1: not known) and member (null: no
    owner, or not known).

    Examples
    --------
    >>> row = {"group": "g", "topics": ["a", "b"], "counts": [2, 1], "members": ["m", "n"],
    ...     "begin": [0, 0, 0], "end": [4, 5, 7], "committed": [4, 5, -1], "owner": [0, 1, -1]}
    >>> rows = by_partition(pa.Table.from_pylist([row], SAMPLES)).to_pydict()
    >>> rows["topic"], rows["partition"], rows["member"]
    (['a', 'a', 'b'], [0, 1, 0], ['m', 'n', None])
    """
    counts = flat(samples["counts"]).astype(np.int64)
    topic_of = np.repeat(np.arange(counts.size), counts)
    number = np.arange(topic_of.size) - np.repeat(np.cumsum(counts) - counts, counts)
    group_of = np.repeat(np.arange(samples.num_rows), np.diff(list_starts(samples["end"])))
    owner = flat(samples["owner"]).astype(np.int64)
    owner = np.where(owner >= 0, owner + list_starts(samples["members"])[group_of], NONE)
    return pa.table(
        {
            "group": samples["group"].take(pa.array(group_of)),
            "topic": as_array(samples["topics"]).flatten().take(pa.array(topic_of)),
            "partition": pa.array(number.astype(np.int32)),
            **{name: pa.array(flat(samples[name])) for name in ("begin", "end", "committed")},
            "member": named(owner, as_array(samples["members"]).flatten()),
        }
    )


def ownership(row: Mapping[str, Any]) -> dict[str, dict[str, list[int]]]:
    """Return each member's partitions by topic; a member without partitions has no topics.

    Parameters
    ----------
    row
        A row of `SAMPLES`: topics, counts, members and owner.

    Examples
    --------
    >>> ownership({"topics": ["a", "b"], "counts": [2, 1], "members": ["m"], "owner": [0, -1, 0]})
    {'m': {'a': [0], 'b': [0]}}
    """
    owned: dict[str, dict[str, list[int]]] = {name: {} for name in row["members"]}
    owners = np.split(np.array(row["owner"], np.int32), np.cumsum(row["counts"])[:-1])
    for topic, mine in zip(row["topics"], owners if row["topics"] else (), strict=True):
        for member in np.unique(mine[mine >= 0]).tolist():
            owned[row["members"][member]][topic] = np.flatnonzero(mine == member).tolist()
    return owned


def readable(partitions: pa.Table) -> pa.Table:
    """Return the rows of `by_partition` in which begin and end offset are known."""
    return partitions.filter(
        pc.and_(pc.greater_equal(partitions["begin"], 0), pc.greater_equal(partitions["end"], 0))
    )
