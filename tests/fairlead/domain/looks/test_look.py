"""A snapshot laid out as a look."""

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from fairlead.domain.groups import LogOffsets
from fairlead.domain.looks.look import LOOKS, look_of
from fairlead.domain.snapshot import GROUPS, MEMBERS, OFFSETS, GroupSnapshot

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


def offset(group: str, topic: str, partition: int, **values: Any) -> dict[str, Any]:
    """Return a row of the table of offsets."""
    row = {"begin_offset": 0, "end_offset": 10, "committed_offset": 5, "error": None} | values
    return {"group": group, "topic": topic, "partition": partition, **row}


def member(group: str, name: str, *owned: tuple[str, int], generation: int = 1) -> dict[str, Any]:
    """Return a row of the table of members."""
    return {
        "group": group,
        "member": name,
        "topics": sorted({topic for topic, _ in owned}),
        "partitions": [{"topic": topic, "partition": number} for topic, number in owned],
        "generation": generation,
    }


def snapshot(
    offsets: list[dict[str, Any]], members: list[dict[str, Any]], groups: list[str]
) -> GroupSnapshot:
    return GroupSnapshot(
        snapshot_id="s",
        snapshot_at=NOON,
        spread_s=0.0,
        offsets=pa.Table.from_pylist(offsets, OFFSETS),
        members=pa.Table.from_pylist(members, MEMBERS),
        groups=pa.Table.from_pylist([{"group": name} for name in groups], GROUPS),
    )


def test_groups_become_rows_with_their_partitions_in_order() -> None:
    """Topics one behind the other; what is not committed or not owned is -1."""
    taken = snapshot(
        [
            offset("g", "t0", 0, stable_offset=5),
            offset("g", "t0", 1, committed_offset=None),
            offset("g", "t1", 0, begin_offset=3, end_offset=20, committed_offset=20),
            offset("h", "t1", 0),
        ],
        [member("g", "a", ("t0", 1)), member("g", "b", ("t1", 0)), member("h", "c")],
        ["h", "g", "idle"],
    )
    look = look_of(taken)
    assert look.schema == LOOKS
    g, h, idle = look.drop_columns("at").to_pylist()
    assert g == {
        "group": "g",
        "topics": ["t0", "t1"],
        "counts": [2, 1],
        "begin": [0, 0, 3],
        "end": [10, 10, 20],
        "committed": [5, -1, 20],
        "stable_end": [5, -1, -1],
        "members": ["a", "b"],
        "owner": [-1, 0, 1],
        "racks": None,
        "rack_set": None,
        "log_bytes": None,
    }
    assert (h["members"], h["owner"]) == (["c"], [-1])
    assert (idle["topics"], idle["end"], idle["members"]) == ([], [], [])


def test_claims_are_settled_as_assignors_settle_them() -> None:
    """The newest generation holds, equal ones are void; claims on what is gone are dropped."""
    taken = snapshot(
        [offset("g", "t", number) for number in range(3)],
        [
            member("g", "a", ("t", 0), ("t", 1), ("t", 7), generation=4),
            member("g", "b", ("t", 0), ("t", 2), ("gone", 0), generation=5),
            member("g", "c", ("t", 2), generation=5),
        ],
        ["g"],
    )
    assert look_of(taken)["owner"].to_pylist() == [[1, 0, -1]]


def test_what_could_not_be_read_is_unknown_and_what_is_gone_is_left_out() -> None:
    """A deleted partition has no place; one whose broker is silent has one, without offsets."""
    unknown = {"begin_offset": None, "end_offset": None}
    taken = snapshot(
        [
            offset("g", "gone", 0, **unknown, error=LogOffsets.GONE_TEXT),
            offset("g", "t", 0, **unknown, error="Leader not available"),
            offset("g", "t", 1),
            offset("g", "t", 2, **unknown, error=LogOffsets.GONE_TEXT),
        ],
        [],
        ["g"],
    )
    (row,) = look_of(taken).to_pylist()
    assert (row["topics"], row["counts"]) == (["t"], [2])
    assert (row["begin"], row["end"], row["committed"]) == ([-1, 0], [-1, 10], [5, 5])


def test_no_group_is_an_empty_look() -> None:
    """A cluster without groups gives a table of the right schema."""
    look = look_of(snapshot([], [], []))
    assert (look.schema, look.num_rows) == (LOOKS, 0)


def test_racks_and_sizes_are_kept_where_any_is_known() -> None:
    """Each set of racks once; a group of which nothing is known has nulls."""
    near, far = {"racks": ["r1", "r2"]}, {"racks": ["r3"]}
    taken = snapshot(
        [
            offset("g", "t", 0, **near, log_bytes=100),
            offset("g", "t", 1),
            offset("g", "t", 2, **far, log_bytes=7),
            offset("g", "t", 3, **near),
            offset("h", "t", 0),
        ],
        [],
        ["g", "h"],
    )
    g, h = look_of(taken).select(["racks", "rack_set", "log_bytes"]).to_pylist()
    assert [g["racks"][number] for number in g["rack_set"] if number >= 0] == [
        ["r1", "r2"],
        ["r3"],
        ["r1", "r2"],
    ]
    assert len(g["racks"]) == 2
    assert (g["rack_set"][1], g["log_bytes"]) == (-1, [100, -1, 7, -1])
    assert set(h.values()) == {None}
