"""The table of samples, made from the brokers' answers."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from fairlead.domain.groups import (
    FetchSources,
    GroupDescription,
    LiveMember,
    LogOffsets,
    TopicCommits,
)
from fairlead.domain.samples import (
    SAMPLES,
    by_partition,
    new_snapshot_id,
    ownership,
    readable,
    samples_of,
    snapshot_id_at,
    taken_at,
    with_stable_end,
)
from fairlead.domain.samples.work_columns import OF_MEMBERS, OF_PARTITIONS
from fairlead.wire.work_report import WorkReport
from tests.samples import samples

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
Partitions = Mapping[str, Collection[int]]
Commits = Mapping[str, Mapping[int, int]]


def member(name: str, *topics: str, owned: Partitions | None = None, **values: Any) -> LiveMember:
    """Return a member that subscribes to topics and owns partitions."""
    return LiveMember(
        member_id=f"{name}-id",
        client_id=f"{name}-client",
        instance_id=values.pop("instance_id", None),
        name=name,
        topics=topics,
        partitions={topic: tuple(numbers) for topic, numbers in (owned or {}).items()},
        generation=values.pop("generation", 1),
        **values,
    )


def described(*members: LiveMember, **values: Any) -> GroupDescription:
    """Return the description of a group."""
    state = "Stable" if members else "Empty"
    common = {"group": "g", "state": state, "protocol": "range"}
    return GroupDescription(**{**common, "members": members, **values})


def log_of(counts: Mapping[str, int], unreadable: Mapping[str, str] | None = None) -> LogOffsets:
    """Return the offsets of topics; the end offsets of all partitions are 10, 20, 30, ..."""
    total, starts = sum(counts.values()), np.cumsum([0, *counts.values()])
    return LogOffsets(
        starts=dict(zip(counts, starts.tolist(), strict=False)),
        counts=counts,
        begin=np.arange(total, dtype=np.int64),
        end=10 * np.arange(1, total + 1, dtype=np.int64),
        unreadable=unreadable or {},
    )


def sampled(
    *groups: GroupDescription,
    log: LogOffsets,
    committed: Mapping[str, Commits] | None = None,
    sources: FetchSources | None = None,
) -> pa.Table:
    """Return the rows of a sample of these groups."""
    taken = samples_of(
        sample_id="s",
        at=NOON,
        descriptions={group.group: group for group in groups},
        committed={
            group: {
                topic: TopicCommits(
                    np.array(list(offsets), np.int32),
                    np.array(list(offsets.values()), np.int64),
                    [b""] * len(offsets),
                )
                for topic, offsets in commits.items()
            }
            for group, commits in (committed or {}).items()
        },
        log=log,
        sources=sources,
    )
    assert taken.schema == SAMPLES
    return taken


def row_of(*groups: GroupDescription, **answers: Any) -> dict[str, Any]:
    """Return the only row of a sample of one group."""
    (row,) = sampled(*groups, **answers).to_pylist()
    only: dict[str, Any] = row
    return only


def test_row_has_all_answers_about_a_group() -> None:
    """Partitions are ordered by topic; without a commit or an owner, the value is -1."""
    static = member("n", "t1", owned={"t1": [0]}, instance_id="n", rack="r1", generation=4)
    group = described(
        member("m", "t0", owned={"t0": [1]}, generation=None), static, topic_ids={"t0": "dDA"}
    )
    log = log_of({"t1": 1, "other": 3, "t0": 2})
    row = row_of(group, log=log, committed={"g": {"t0": {0: 5}, "t1": {0: 9}}})
    assert row == {
        "group": "g",
        "sample_id": "s",
        "at": NOON,
        "state": "Stable",
        "protocol": "range",
        "group_type": "classic",
        "error": None,
        "topics": ["t0", "t1"],
        "topic_ids": ["dDA", None],
        "counts": [2, 1],
        "begin": [4, 5, 0],
        "end": [50, 60, 10],
        "committed": [5, -1, 9],
        "stable_end": None,
        "racks": None,
        "rack_set": None,
        "log_bytes": None,
        "owner": [-1, 0, 1],
        "members": ["m", "n"],
        "member_ids": ["m-id", "n-id"],
        "client_ids": ["m-client", "n-client"],
        "instance_ids": [None, "n"],
        "member_racks": [None, "r1"],
        "generations": [None, 4],
        "subscriptions": [["t0"], ["t1"]],
        **dict.fromkeys(["reporter", *OF_PARTITIONS, "tokens", *OF_MEMBERS]),
    }


def test_reports_of_present_members_are_columns_of_the_sample() -> None:
    """The newest report of each present member is stored; damaged reports are ignored."""
    group = described(member("m", "t"), member("n", "t"))
    older, newer = (WorkReport(*range(first, first + 9)) for first in (10, 20))
    texts = [
        older.text("m-id", "aaaaaa"),
        newer.text("m-id", "aaaaaa"),
        newer.text("gone-id", "bbbbbb"),
        newer.text("n-id", "cccccc")[:-1],
        "an application's own",
    ]
    commits = TopicCommits(
        np.arange(5, dtype=np.int32), np.arange(5), [text.encode() for text in texts]
    )
    (row,) = samples_of(
        sample_id="s",
        at=NOON,
        descriptions={"g": group},
        committed={"g": {"t": commits}},
        log=log_of({"t": 5}),
    ).to_pylist()
    assert row["reporter"] == [0, 0, -1, -1, -1]
    assert [row[name][:2] for name in OF_PARTITIONS] == [[14, 24], [15, 25], [16, 26]]
    assert row["tokens"] == ["aaaaaa", None]
    assert [row[name] for name in OF_MEMBERS] == [[n, -1] for n in (20, 21, 22, 23, 27, 28)]


def test_group_that_could_not_be_described_has_the_error() -> None:
    """If a group could not be described, its row has the error, no members, and its commits."""
    group = described(state="PreparingRebalance", error="Group g rebalances")
    row = row_of(group, log=log_of({"t": 1}), committed={"g": {"t": {0: 7}}})
    assert (row["error"], row["members"], row["committed"]) == ("Group g rebalances", [], [7])


def test_unreadable_topic_is_an_error_of_its_subscribers() -> None:
    """Subscribers' rows name the first unreadable topic, unless the group has an error itself."""
    log = replace(
        log_of({"t": 2}, {"t": "partition 1: no leader", "z": "?"}), end=np.array([3, -1])
    )
    reader = described(member("m", "t", "z"), group="reader")
    other = described(member("m", "u"), group="left")
    broken = replace(reader, group="broken", error="it is broken")
    table = sampled(reader, other, broken, log=log, committed={"left": {"t": {0: 1}}})
    rows = {row["group"]: row for row in table.to_pylist()}
    why = "Topic t of group reader cannot be read: partition 1: no leader"
    errors = {name: row["error"] for name, row in rows.items()}
    assert errors == {"broken": "it is broken", "left": None, "reader": why}
    assert [rows[name]["end"] for name in ("reader", "left")] == [[3, -1]] * 2
    assert readable(by_partition(table))["partition"].to_pylist() == [0] * 3


def test_racks_and_sizes_are_columns_if_any_is_known() -> None:
    """A group's row lists each set of racks once; without known racks, the columns are null."""
    sources = FetchSources(
        rack_sets=[("r3",), ("r9",), ("r1", "r2")],
        rack_set=np.array([2, -1, 0, 2, -1, 1], np.int32),
        log_bytes=np.array([100, -1, 7, -1, 5, 6]),
    )
    groups = [described(member("m", topic), group=topic) for topic in "tuv"]
    table = sampled(*groups, log=log_of({"t": 4, "u": 1, "v": 1}), sources=sources)
    columns = table.select(["racks", "rack_set", "log_bytes"]).to_pylist()
    assert columns == [
        {"racks": [["r3"], ["r1", "r2"]], "rack_set": [1, -1, 0, 1], "log_bytes": [100, -1, 7, -1]},
        dict.fromkeys(("racks", "rack_set", "log_bytes")),
        {"racks": [["r9"]], "rack_set": [0], "log_bytes": [6]},
    ]


def test_only_groups_with_stable_ends_have_a_list_of_them() -> None:
    """Unknown last stable offsets are -1; a group in which none is known has no list."""
    rows = [{"group": group, "topics": ["t"], "counts": [2]} for group in "abc"]
    table = samples(*rows, {"group": "d", "topics": [], "counts": []})
    found = with_stable_end(table, np.array([-1, -1, 7, -1, -1, 0]))
    assert found.schema == SAMPLES
    assert found["stable_end"].to_pylist() == [None, [7, -1], [-1, 0], None]
    assert found.drop_columns("stable_end").equals(table.drop_columns("stable_end"))


@st.composite
def answers(draw: st.DrawFn) -> dict[str, Any]:
    """Return random brokers' answers; commits and owners may name deleted partitions."""
    topics, numbers = st.sampled_from("tuv"), st.integers(0, 3)
    offsets = st.dictionaries(topics, st.dictionaries(numbers, st.integers(0, 99), min_size=1))
    claims = st.dictionaries(topics, st.sets(numbers, min_size=1))
    log = log_of(draw(st.dictionaries(topics, st.integers(0, 3))))
    groups, committed = [], {}
    for name in draw(st.sets(st.sampled_from("gh"))):
        members = [
            member(
                number,
                *sorted(draw(st.sets(topics))),
                owned=draw(claims),
                generation=draw(st.sampled_from([None, 1, 2])),
            )
            for number in draw(st.sampled_from(["", "m", "mno"]))
        ]
        groups.append(described(*members, group=name))
        if draw(st.booleans()):
            committed[name] = draw(offsets)
    return {"groups": groups, "committed": committed, "log": log}


@given(answers())
def test_every_partition_has_its_answers(given_answers: dict[str, Any]) -> None:
    """For random answers, the table is the same as if each partition were looked up separately."""
    log, committed = given_answers["log"], given_answers["committed"]
    expected = []
    for group in sorted(given_answers["groups"], key=lambda group: group.group):
        commits = committed.get(group.group, {})
        read = {topic for member in group.members for topic in member.topics} | commits.keys()
        for topic in sorted(read & log.counts.keys()):
            for number in range(log.counts[topic]):
                claims: dict[int, list[str]] = {}
                for owner in group.members:
                    if number in owner.partitions.get(topic, ()):
                        claims.setdefault(owner.generation or 0, []).append(owner.name)
                newest = claims[max(claims)] if claims else []
                place = log.starts[topic] + number
                expected.append(
                    {
                        "group": group.group,
                        "topic": topic,
                        "partition": number,
                        "begin": place,
                        "end": 10 * (place + 1),
                        "committed": commits.get(topic, {}).get(number, -1),
                        "member": newest[0] if len(newest) == 1 else None,
                    }
                )
    table = sampled(*given_answers["groups"], log=log, committed=committed)
    assert by_partition(table).to_pylist() == expected
    apart = [by_partition(table.slice(row, 1)) for row in range(table.num_rows)]
    together = pa.concat_tables([by_partition(table.slice(0, 0)), *apart])
    assert together.to_pylist() == expected
    for row in table.to_pylist():
        owned = {
            (name, topic, number)
            for name, topics in ownership(row).items()
            for topic, numbers in topics.items()
            for number in numbers
        }
        mine = [each for each in expected if each["group"] == row["group"] and each["member"]]
        assert owned == {(each["member"], each["topic"], each["partition"]) for each in mine}
        assert [*ownership(row)] == row["members"]


def test_ids_sort_by_time() -> None:
    moments = [NOON + timedelta(microseconds=number) for number in range(3)]
    ids = [new_snapshot_id(at) for at in moments]
    assert [taken_at(sample_id) for sample_id in ids] == moments
    assert ids[0] < snapshot_id_at(moments[1]) < ids[1] < ids[2]
    assert new_snapshot_id(NOON) != new_snapshot_id(NOON)
