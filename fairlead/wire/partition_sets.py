"""Sets of partitions as range strings: "0-3,7" is {0, 1, 2, 3, 7}.

Belongs here: range strings as in the plan topic, and shares stored as ranges. Belongs elsewhere:
which member owns a partition (`document`).
"""

import re
from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt

#: The first and the last partition of each of R ranges, int64 of shape (2, R), ascending.
Ranges = npt.NDArray[np.int64]

_RANGES = re.compile(r"\d{1,10}(-\d{1,10})?(,\d{1,10}(-\d{1,10})?)*", re.ASCII)


def format_partitions(partitions: npt.ArrayLike) -> str:
    """Return a set of partitions as a range string with ascending ranges.

    Parameters
    ----------
    partitions
        Partition numbers in any order, shape (K,).

    Examples
    --------
    >>> format_partitions([7, 0, 1, 2, 3])
    '0-3,7'
    >>> format_partitions([])
    ''
    """
    ranges: list[list[int]] = []
    for number in sorted(set(np.asarray(partitions, dtype=np.int64).tolist())):
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in ranges)


def parse_ranges(text: str, *, below: int) -> Ranges:
    """Parse a range string, in time proportional to its length.

    Parameters
    ----------
    text
        Ranges in ascending order without overlap, as returned by `format_partitions`.
    below
        The topic's partition count.

    Raises
    ------
    ValueError
        The text is not a range string, is not in order, contains a partition twice, or contains a
        partition that does not exist.

    Examples
    --------
    >>> parse_ranges("0-3,7", below=8).tolist()
    [[0, 7], [3, 7]]
    """
    if not text:
        return np.empty((2, 0), dtype=np.int64)
    if not _RANGES.fullmatch(text):
        raise ValueError(f"{text[:80]!r} is not a set of partition ranges such as '0-3,7'")
    firsts, lasts, free = [], [], 0
    for piece in text.split(","):
        first_text, _, last_text = piece.partition("-")
        first = int(first_text)
        last = int(last_text) if last_text else first
        if not free <= first <= last:
            raise ValueError(
                f"{piece!r} in {text[:80]!r} is out of order or names a partition twice"
            )
        firsts.append(first)
        lasts.append(last)
        free = last + 1
    if free > below:
        raise ValueError(f"partition {free - 1} does not exist: the topic has {below} partitions")
    return np.array([firsts, lasts], dtype=np.int64)


def expand(ranges: Ranges) -> npt.NDArray[np.int32]:
    """Return all partitions in the ranges, int32 of shape (K,), ascending.

    Examples
    --------
    >>> expand(np.array([[0, 7], [3, 7]])).tolist()
    [0, 1, 2, 3, 7]
    """
    pieces = [
        np.arange(first, last + 1, dtype=np.int32)
        for first, last in zip(*ranges.tolist(), strict=True)
    ]
    return np.concatenate(pieces) if pieces else np.empty(0, dtype=np.int32)


class HeldAsRanges(Mapping[str, npt.NDArray[np.int32]]):
    """A mapping of topic to partition numbers, which are stored as ranges.

    Each access returns a new array, int32 of shape (K,), ascending. Arrays are not stored, because
    a range string of a few bytes can contain millions of partitions.

    Parameters
    ----------
    ranges
        Maps each topic to its ranges.
    """

    def __init__(self, ranges: Mapping[str, Ranges]) -> None:
        self._ranges = ranges

    def __getitem__(self, topic: str) -> npt.NDArray[np.int32]:
        """Return all partitions of a topic."""
        return expand(self._ranges[topic])

    def __iter__(self) -> Iterator[str]:
        """Iterate over the topics."""
        return iter(self._ranges)

    def __len__(self) -> int:
        """Return the number of topics."""
        return len(self._ranges)

    def below(self, topic: str, count: int) -> npt.NDArray[np.int32]:
        """Return a topic's partitions below `count`, without creating an array of all of them.

        Examples
        --------
        >>> HeldAsRanges({"t": np.array([[0, 5], [2, 9_999_999]])}).below("t", 7).tolist()
        [0, 1, 2, 5, 6]
        """
        first, last = self._ranges[topic]
        exist = first < count
        return expand(np.stack([first[exist], np.minimum(last[exist], count - 1)]))
