"""Partition sets as text such as `0-3,7`: written sets are read, invalid text is refused."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.wire.partition_sets import expand, format_partitions, parse_ranges

partitions = st.lists(st.integers(0, 200))


@given(partitions)
def test_sets_are_read_back(values: list[int]) -> None:
    """Any set is read back from its text, ascending and without repeats."""
    assert expand(parse_ranges(format_partitions(values), below=201)).tolist() == sorted(
        set(values)
    )


@given(partitions)
def test_text_is_the_shortest(values: list[int]) -> None:
    """Equal sets have equal texts, and adjacent ranges are merged."""
    text = format_partitions(values)
    assert text == format_partitions(sorted(set(values), reverse=True))
    numbers = [[int(number) for number in piece.split("-")] for piece in text.split(",") if piece]
    assert all(left[-1] + 1 < right[0] for left, right in pairwise(numbers))


@given(st.text("0123456789-, +x٣", max_size=12))
def test_any_text_is_read_or_refused(text: str) -> None:
    """Every text is read as an ascending set of existing partitions, or raises ValueError."""
    try:
        found = expand(parse_ranges(text, below=50)).tolist()
    except ValueError:
        return
    assert found == sorted(set(found))
    assert all(0 <= partition < 50 for partition in found)


@pytest.mark.parametrize(
    "text",
    ["-1", "1-", "1,,2", ",", " 1", "1 ", "1\n", "0x1", "1.0", "1-2-3", "٣", "+1", "a" * 1000],
)
def test_invalid_ranges_are_refused(text: str) -> None:
    """Signs, spaces, other kinds of numbers and empty ranges are refused with a short message."""
    with pytest.raises(ValueError, match="not a set of partition ranges") as caught:
        parse_ranges(text, below=10)
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize("text", ["3-1", "2,1", "1,1", "0-3,3", "0-3,2-5"])
def test_order_and_repeats_are_refused(text: str) -> None:
    """Ranges that descend or overlap are refused."""
    with pytest.raises(ValueError, match="out of order or names a partition twice"):
        parse_ranges(text, below=10)


@pytest.mark.parametrize("text", ["10", "0-10", "0-4294967295", "9999999999"])
def test_partitions_that_do_not_exist_are_refused(text: str) -> None:
    """A range with partitions that the topic does not have is refused before it takes memory."""
    with pytest.raises(ValueError, match="does not exist: the topic has 10 partitions"):
        parse_ranges(text, below=10)
