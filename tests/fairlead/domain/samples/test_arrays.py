"""The samples of a group, converted to arrays."""

from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from fairlead.domain.samples.arrays import all_topics, arrays_of
from tests.samples import samples

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def row(before: float, *, topics: dict[str, int] | None = None, **values: Any) -> dict[str, Any]:
    """Return a sample taken this many minutes before noon; its offsets grow with time."""
    counts = {"t": 2} if topics is None else topics
    total = sum(counts.values())
    offsets = [1000 - 10 * int(before) + number for number in range(total)]
    return {
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


def test_stable_ends_belong_to_the_samples_that_read_them() -> None:
    """In samples without last stable offsets, these are -1; each partition keeps its column."""
    rows = samples(row(3), row(2, stable_end=[-1, 7]), row(1, topics={"s": 1, "t": 2}))
    arrays = arrays_of(rows, ["t"], [2], ["a"])
    assert arrays.stable_end is not None
    assert arrays.stable_end.tolist() == [[-1, -1], [-1, 7], [-1, -1]]
    assert arrays_of(rows.slice(0, 1), ["t"], [2], ["a"]).stable_end is None


def test_samples_are_ordered_and_counted_once() -> None:
    taken = samples(row(0), row(2), row(1), row(1), row(2))
    series = arrays_of(taken, ["t"], [2], ["a"])
    assert ((series.at - NOON.timestamp()) / 60).tolist() == [-2, -1, 0]
    assert series.end.tolist() == [[980, 981], [990, 991], [1000, 1001]]


def test_all_samples_of_the_last_hour_and_one_per_quarter_before() -> None:
    """Of samples older than an hour, one per 15 minutes is used, up to an age of one day."""
    rows = [row(before) for before in range(0, 60 * 30, 5)]
    series = arrays_of(samples(*rows), ["t"], [2], ["a"])
    ages = ((series.at[-1] - series.at) / 60).round().astype(int)[::-1]
    assert ages[:13].tolist() == list(range(0, 65, 5))
    assert np.unique(np.diff(ages[14:])).tolist() == [15]
    assert 60 * 24 - 15 < ages[-1] <= 60 * 24


def test_new_partitions_were_unknown_before() -> None:
    series = arrays_of(samples(row(1, topics={"t": 1}), row(0, topics={"t": 3})), ["t"], [3], ["a"])
    assert series.end.tolist() == [[990, -1, -1], [1000, 1001, 1002]]
    assert series.owner.tolist() == [[0, -1, -1], [0, 0, 0]]


def test_owners_have_the_same_numbers_in_all_samples() -> None:
    """Owners are indices into one list of members: present ones first, then former ones."""
    before = row(1, members=["gone", "b"], owner=[1, 0])
    now = row(0, members=["a", "b"], owner=[0, -1])
    series = arrays_of(samples(before, now), ["t"], [2], ["a", "b"])
    assert series.members == ("a", "b", "gone")
    assert series.owner.tolist() == [[1, 2], [0, -1]]


def test_all_topics_of_the_newest_sample_are_columns() -> None:
    """Columns include topics without a subscriber, but not deleted topics."""
    then = row(1, topics={"gone": 1, "t": 1})
    now = row(0, topics={"left": 1, "t": 2}, members=["b"], owner=[-1, 0, -1])
    series = all_topics(samples(then, now), latest=True)
    assert series.end.tolist() == [[-1, 991, -1], [1000, 1001, 1002]]
    assert (series.members, series.owner[-1].tolist()) == (("b", "a"), [-1, 0, -1])
    assert series.latest
