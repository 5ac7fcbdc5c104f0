"""What the judgement gets of the looks that were kept."""

from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa

from fairlead.domain.looks.arrays import alike, all_topics, looks_of
from fairlead.domain.looks.lag import partition_lag
from tests.samples import samples

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
    return samples(*rows)


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


def sampled(
    group: str,
    layouts: list[dict[str, int]],
    minutes: tuple[float, ...] = (3, 2, 1, 0),
    *,
    transaction: bool = False,
) -> pa.Table:
    """Return samples of a group, so many minutes before noon, each with topics and their sizes."""
    rng = np.random.default_rng(sum(map(ord, group)))
    rows: list[dict[str, Any]] = []
    for place, (layout, ago) in enumerate(zip(layouts, minutes, strict=True)):
        size = sum(layout.values())
        end = 1_000 * place + rng.integers(0, 500, size)
        committed = np.where(rng.random(size) < 0.2, -1, end - rng.integers(0, 2_000, size))
        # The last partition's commits stand in front of an open transaction.
        committed[-1:] = 900
        rows.append(
            row(ago, topics=layout)
            | {
                "group": group,
                "end": end.tolist(),
                "committed": np.maximum(committed, -1).tolist(),
                "stable_end": [-1] * (size - 1) + [900] if transaction and place else None,
            }
        )
    return table(*rows)


def test_groups_side_by_side_have_the_lag_that_they_have_alone() -> None:
    """Of any size, with grown topics, other moments, another reset policy, or a moment twice."""
    same, grown = [{"t": 3, "u": 2}] * 4, [{"t": 1}, {"t": 1}, {"t": 2}, {"t": 2}]
    groups = {
        "a": sampled("a", same),
        "alike": sampled("alike", [{"other": 4}] * 4),
        "empty": sampled("empty", [{}] * 4),
        "grown": sampled("grown", grown),
        "latest": sampled("latest", same),
        "once": sampled("once", [{"t": 2}], (0,)),
        "other moments": sampled("other moments", same, (9, 5, 2, 0)),
        "transaction": sampled("transaction", same, transaction=True),
        "twice": sampled("twice", same, (3, 1, 1, 0)),
    }
    looks = {name: all_topics(rows, latest=name == "latest") for name, rows in groups.items()}
    found = {}
    together = list(alike(looks))
    assert ["a", "alike", "empty", "grown", "transaction"] in [names for names, _ in together]
    for names, beside in together:
        group_of = np.repeat(np.arange(len(names)), [looks[name].partitions for name in names])
        measured = partition_lag(beside, group_of)
        for place, name in enumerate(names):
            mine = group_of == place
            found[name] = {key: values[mine] for key, values in vars(measured).items()}
    assert found.keys() == groups.keys()
    for name in groups:
        for key, values in vars(partition_lag(looks[name])).items():
            np.testing.assert_array_equal(found[name][key], values, f"{name}: {key}")
