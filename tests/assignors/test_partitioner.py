"""The default partitioner: its three rules."""

from collections import Counter

from assignors.partitioner import DefaultPartitioner, partitions_of


def test_an_explicit_partition_is_used_as_it_is() -> None:
    """Neither key nor availability is asked."""
    assert DefaultPartitioner().partition(b"key", 4, explicit=3, available=[0]) == 3


def test_a_key_decides_whatever_is_available() -> None:
    """The same key always lands on the same partition."""
    partitioner = DefaultPartitioner()
    expected = int(partitions_of([b"key"], 7)[0])
    assert {partitioner.partition(b"key", 7, available=[n]) for n in range(7)} == {expected}


def test_records_without_key_take_turns_over_available_partitions() -> None:
    """All partitions take turns where none is available; the counter may wrap as Java's does."""
    partitioner = DefaultPartitioner(counter=-2)
    turns = Counter(partitioner.partition(None, 6, available=[1, 4]) for _ in range(8))
    assert turns == {1: 4, 4: 4}
    assert [DefaultPartitioner(n).partition(None, 3, available=[]) for n in range(4)] == [
        0,
        1,
        2,
        0,
    ]


def test_no_keys_have_no_partitions() -> None:
    """An empty batch is an empty answer."""
    assert partitions_of([], 3).tolist() == []
    assert partitions_of([b""], 3).tolist() == [int(partitions_of([b"", b"a"], 3)[0])]
