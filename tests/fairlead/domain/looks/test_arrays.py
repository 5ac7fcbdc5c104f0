"""What the judgement gets of the looks that were kept."""

from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa

from fairlead.domain.looks.arrays import looks_of
from fairlead.domain.looks.look import LOOKS

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def row(before: float, *, topics: dict[str, int] | None = None, **values: Any) -> dict[str, Any]:
    """Return a look so many minutes before noon; offsets tell the minute."""
    counts = {"t": 2} if topics is None else topics
    total = sum(counts.values())
    offsets = [1000 - 10 * int(before) + number for number in range(total)]
    return {
        "group": "g",
        "at": NOON - before * MINUTE,
        "topics": list(counts),
        "counts": list(counts.values()),
        "begin": [0] * total,
        "end": offsets,
        "committed": offsets,
        "members": ["a"],
        "owner": [0] * total,
        **values,
    }


def table(*rows: dict[str, Any]) -> pa.Table:
    return pa.Table.from_pylist(list(rows), LOOKS)


def test_stable_ends_are_those_of_the_looks_that_read_them() -> None:
    """A look that read none has no list; where the topics are others, columns stay in place."""
    rows = table(row(3), row(2, stable_end=[-1, 7]), row(1, topics={"s": 1, "t": 2}))
    found = looks_of(rows, ["t"], [2], ["a"])
    assert found.stable_end is not None
    assert found.stable_end.tolist() == [[-1, -1], [-1, 7], [-1, -1]]
    assert looks_of(rows.slice(0, 1), ["t"], [2], ["a"]).stable_end is None


def test_looks_are_put_in_order_and_counted_once() -> None:
    """Out of order and repeated, they are what they are in order."""
    looks = looks_of(table(row(0), row(2), row(1), row(1), row(2)), ["t"], [2], ["a"])
    assert ((looks.at - NOON.timestamp()) / 60).tolist() == [-2, -1, 0]
    assert looks.end.tolist() == [[980, 981], [990, 991], [1000, 1001]]


def test_every_look_of_the_last_hour_counts_and_quarters_before() -> None:
    """Up to a day back from the newest look."""
    rows = [row(before) for before in range(0, 60 * 30, 5)]
    looks = looks_of(table(*rows), ["t"], [2], ["a"])
    ages = ((looks.at[-1] - looks.at) / 60).round().astype(int)[::-1]
    assert ages[:13].tolist() == list(range(0, 65, 5))
    assert np.unique(np.diff(ages[14:])).tolist() == [15]
    assert 60 * 24 - 15 < ages[-1] <= 60 * 24


def test_topic_that_grew_was_unknown_before() -> None:
    """A partition that did not exist yet has no offsets, and no owner."""
    looks = looks_of(table(row(1, topics={"t": 1}), row(0, topics={"t": 3})), ["t"], [3], ["a"])
    assert looks.end.tolist() == [[990, -1, -1], [1000, 1001, 1002]]
    assert looks.owner.tolist() == [[0, -1, -1], [0, 0, 0]]


def test_topics_that_nobody_reads_any_more_are_left_out() -> None:
    """And those that were made since stand where the problem has them."""
    old, new = row(1, topics={"gone": 2, "t": 2}), row(0, topics={"new": 1, "t": 2})
    looks = looks_of(table(old, new), ["new", "t"], [1, 2], ["a"])
    assert looks.end.tolist() == [[-1, 992, 993], [1000, 1001, 1002]]


def test_owners_are_named_across_looks() -> None:
    """Members of now come first, in their order; who left keeps a name of its own."""
    before = row(1, members=["gone", "b"], owner=[1, 0])
    now = row(0, members=["a", "b"], owner=[0, -1])
    looks = looks_of(table(before, now), ["t"], [2], ["a", "b"])
    assert looks.members == ("a", "b", "gone")
    assert looks.owner.tolist() == [[1, 2], [0, -1]]


def test_one_look_only() -> None:
    """It is what is now."""
    looks = looks_of(table(row(0)), ["t"], [2], ["a"])
    assert (len(looks), looks.partitions) == (1, 2)


def test_group_that_reads_nothing() -> None:
    """No partition, whatever it once committed."""
    looks = looks_of(table(row(0), row(1, topics={})), [], [], [])
    assert (len(looks), looks.partitions) == (2, 0)
