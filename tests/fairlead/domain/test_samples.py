"""What brokers answered, as rows of the table of samples."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa

from fairlead.domain.groups import (
    CommittedOffsets,
    FetchSources,
    GroupDescription,
    LiveMember,
    LogOffsets,
    TopicCommits,
)
from fairlead.domain.samples import (
    SAMPLES,
    by_partition,
    ownership,
    readable,
    samples_of,
    with_stable_end,
)
from tests.samples import samples

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


def member(
    name: str,
    owned: Mapping[str, Sequence[int]] | None = None,
    *,
    topics: Sequence[str] | None = None,
    generation: int | None = 1,
) -> LiveMember:
    """Return a member that subscribes to what it owns, unless `topics` says otherwise."""
    owned = owned or {}
    return LiveMember(
        member_id=f"{name}-id",
        client_id=f"{name}-client",
        host="",
        instance_id=None,
        name=name,
        topics=tuple(owned if topics is None else topics),
        partitions={topic: tuple(numbers) for topic, numbers in owned.items()},
        generation=generation,
        rack=f"rack-of-{name}",
    )


def group(name: str, *members: LiveMember, **values: Any) -> GroupDescription:
    """Return a group of the classic protocol."""
    state = "Stable" if members else "Empty"
    return GroupDescription(name, state, "consumer", "range", members, **values)


def log(counts: Mapping[str, int], **unreadable: str) -> LogOffsets:
    """Return logs that begin at 0, and end at 100, 101, ... partition by partition."""
    starts = np.cumsum([0, *counts.values()]).tolist()
    return LogOffsets(
        starts=dict(zip(counts, starts, strict=False)),
        counts=counts,
        begin=np.zeros(starts[-1], np.int64),
        end=np.arange(100, 100 + starts[-1]),
        unreadable=unreadable,
    )


def commits(**offsets: Mapping[int, int]) -> CommittedOffsets:
    """Return commits: topic to partition to offset."""
    return {
        topic: TopicCommits(
            np.array(list(known), np.int32), np.array(list(known.values())), [b""] * len(known)
        )
        for topic, known in offsets.items()
    }


def taken(
    groups: Sequence[GroupDescription],
    committed: Mapping[str, CommittedOffsets],
    ends: LogOffsets,
    sources: FetchSources | None = None,
) -> list[dict[str, Any]]:
    """Return the rows of a sample."""
    table = samples_of(
        sample_id="s",
        at=NOON,
        descriptions={found.group: found for found in groups},
        committed=committed,
        log=ends,
        sources=sources,
    )
    assert table.schema == SAMPLES
    rows: list[dict[str, Any]] = table.to_pylist()
    return rows


def test_groups_become_rows_with_their_partitions_in_order() -> None:
    """Topics one behind the other; what is not committed or not owned is -1."""
    a, b = member("a", {"t0": [1]}), member("b", {"t1": [0]})
    idle, g, h = taken(
        [group("h", member("c", topics=["t1"])), group("g", a, b), group("Idle")],
        {"g": commits(t0={0: 5}, t1={0: 20}), "h": commits(t1={0: 7})},
        log({"t0": 2, "t1": 1}),
    )
    assert g == {
        "group": "g",
        "sample_id": "s",
        "at": NOON,
        "state": "Stable",
        "protocol": "range",
        "group_type": "classic",
        "error": None,
        "topics": ["t0", "t1"],
        "topic_ids": [None, None],
        "counts": [2, 1],
        "begin": [0, 0, 0],
        "end": [100, 101, 102],
        "committed": [5, -1, 20],
        "stable_end": None,
        "racks": None,
        "rack_set": None,
        "log_bytes": None,
        "owner": [-1, 0, 1],
        "members": ["a", "b"],
        "member_ids": ["a-id", "b-id"],
        "client_ids": ["a-client", "b-client"],
        "instance_ids": [None, None],
        "member_racks": ["rack-of-a", "rack-of-b"],
        "generations": [1, 1],
        "subscriptions": [["t0"], ["t1"]],
    }
    assert (h["members"], h["owner"], h["end"], h["committed"]) == (["c"], [-1], [102], [7])
    assert (idle["group"], idle["state"], idle["topics"], idle["end"], idle["members"]) == (
        *("Idle", "Empty"),
        *([], [], []),
    )


def test_claims_are_settled_as_assignors_settle_them() -> None:
    """The newest generation holds, equal ones are void; claims on what is gone are dropped."""
    members = [
        member("a", {"t": [0, 1, 7]}, generation=4),
        member("b", {"t": [0, 2], "gone": [0]}, generation=5),
        member("c", {"t": [2]}, generation=5),
    ]
    (row,) = taken([group("g", *members)], {}, log({"t": 3}))
    assert row["owner"] == [1, 0, -1]


def test_what_is_gone_is_left_out_and_what_is_silent_is_unknown() -> None:
    """Commits of a deleted topic or partition have no place; a partition without offsets has."""
    ends = log({"t": 2})
    ends.begin[0] = ends.end[0] = -1
    (row,) = taken([group("g")], {"g": commits(gone={0: 3}, t={0: 5, 1: 6, 2: 7})}, ends)
    assert (row["topics"], row["counts"]) == (["t"], [2])
    assert (row["begin"], row["end"], row["committed"]) == ([-1, 0], [-1, 101], [5, 6])


def test_group_cannot_be_planned_for_its_own_reason_or_a_topic_that_it_reads() -> None:
    """Its own comes first; a topic that is only committed is no reason."""
    reads = member("a", topics=["hidden"])
    failed, reader, committer = taken(
        [
            group("a", error="It is in a rebalance"),
            group("b", reads),
            group("c", member("c", topics=["t"])),
        ],
        {"a": commits(t={0: 1}), "c": commits(hidden={0: 1})},
        log({"t": 1}, hidden="Topic authorization failed."),
    )
    assert failed["error"] == "It is in a rebalance"
    assert (failed["topics"], failed["committed"]) == (["t"], [1])
    assert reader["error"] == (
        "Topic hidden of group b cannot be read: Topic authorization failed."
    )
    assert committer["error"] is None


def test_no_group_is_an_empty_table() -> None:
    """A cluster without groups gives a table of the right schema."""
    assert taken([], {}, log({})) == []


def test_topic_ids_stand_beside_their_topics() -> None:
    """Where a coordinator tells them; what nobody reads is left out."""
    found = group("g", member("a", topics=["t", "u"]), topic_ids={"u": "id-of-u", "x": "id-of-x"})
    (row,) = taken([found], {}, log({"t": 1, "u": 1}))
    assert (row["topics"], row["topic_ids"]) == (["t", "u"], [None, "id-of-u"])


def test_racks_and_sizes_are_kept_where_any_is_known() -> None:
    """Each set of racks once; a group of which nothing is known has nulls."""
    sources = FetchSources(
        rack_sets=[("r1",), ("r1", "r2"), ("r3",)],
        rack_set=np.array([-1, 2, -1, 1, 2], np.int32),
        log_bytes=np.array([-1, 100, -1, 7, 8]),
    )
    g, h = taken(
        [group("g", member("a", topics=["t"])), group("h", member("b", topics=["silent"]))],
        {},
        log({"silent": 1, "t": 4}),
        sources,
    )
    assert [g["racks"][number] for number in g["rack_set"] if number >= 0] == [
        *(["r3"], ["r1", "r2"], ["r3"])
    ]
    assert len(g["racks"]) == 2
    assert (g["rack_set"][1], g["log_bytes"]) == (-1, [100, -1, 7, 8])
    assert (h["racks"], h["rack_set"], h["log_bytes"]) == (None, None, None)


def test_stable_ends_are_null_for_groups_without_any() -> None:
    """A list for a group in which one was read, with -1 for the others."""
    rows = [
        {"group": "g", "topics": ["t"], "counts": [2]},
        {"group": "h", "topics": ["t"], "counts": [1]},
    ]
    found = with_stable_end(samples(*rows), np.array([-1, 7, -1]))
    assert found["stable_end"].to_pylist() == [[-1, 7], None]
    assert found.schema == SAMPLES


def test_partitions_of_several_groups_are_in_order() -> None:
    """Also of a table in chunks, and of a part of one; only those whose log is known are kept."""
    rows = [
        {
            "group": name,
            "topics": ["t", "u"],
            "counts": [1, 2],
            "begin": [0, 0, -1],
            "end": [9, 8, -1],
            "committed": [3, -1, 4],
            "members": ["m"],
            "owner": [-1, 0, 0],
        }
        for name in "gh"
    ]
    table = pa.concat_tables([samples(rows[0]), samples(*rows)])
    found = by_partition(table.slice(1))
    assert found.num_rows == 6
    known = readable(found).to_pylist()
    assert [(row["group"], row["topic"], row["partition"], row["member"]) for row in known] == [
        ("g", "t", 0, None),
        ("g", "u", 0, "m"),
        ("h", "t", 0, None),
        ("h", "u", 0, "m"),
    ]
    assert [row["committed"] for row in known] == [3, -1, 3, -1]


def test_who_owns_what_is_read_back() -> None:
    """As members said, without contradictions; members without anything are there."""
    members = [member("a", {"t": [0, 2], "u": [1]}), member("b", {"t": [1]}), member("c")]
    (row,) = taken([group("g", *members)], {}, log({"t": 4, "u": 2}))
    assert ownership(row) == {"a": {"t": [0, 2], "u": [1]}, "b": {"t": [1]}, "c": {}}
    assert ownership({"topics": [], "counts": [], "members": ["a"], "owner": []}) == {"a": {}}
