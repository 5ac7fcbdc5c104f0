"""Sets of partitions as range strings: "0-3,7" is {0, 1, 2, 3, 7}.

Belongs here: the text form the plan topic uses. Does not: which partitions belong to whom.
"""

import re

import numpy as np
import numpy.typing as npt

_RANGES = re.compile(r"\d{1,10}(-\d{1,10})?(,\d{1,10}(-\d{1,10})?)*", re.ASCII)


def format_partitions(partitions: npt.ArrayLike) -> str:
    """Write a set of partitions as ascending ranges.

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
    values = np.unique(np.asarray(partitions, dtype=np.int64))
    if not values.size:
        return ""
    breaks = np.flatnonzero(np.diff(values) != 1)
    firsts = values[np.concatenate(([0], breaks + 1))].tolist()
    lasts = values[np.concatenate((breaks, [values.size - 1]))].tolist()
    return ",".join(
        str(first) if first == last else f"{first}-{last}"
        for first, last in zip(firsts, lasts, strict=True)
    )


def parse_partitions(text: str, *, below: int) -> npt.NDArray[np.int32]:
    """Read a range string.

    Parameters
    ----------
    text
        Ranges in ascending order without overlap, as `format_partitions` writes them.
    below
        The topic's partition count; also what bounds the memory a hostile string can ask for.

    Returns
    -------
    int32 array of shape (K,), ascending.

    Raises
    ------
    ValueError
        The text is no range string, or names a partition twice or one the topic does not have.

    Examples
    --------
    >>> parse_partitions("0-3,7", below=8).tolist()
    [0, 1, 2, 3, 7]
    """
    if not text:
        return np.empty(0, dtype=np.int32)
    if not _RANGES.fullmatch(text):
        raise ValueError(f"{text[:80]!r} is no set of partition ranges such as '0-3,7'")
    pieces: list[npt.NDArray[np.int32]] = []
    next_free = 0
    for piece in text.split(","):
        first_text, _, last_text = piece.partition("-")
        first, last = int(first_text), int(last_text or first_text)
        if first > last or first < next_free:
            raise ValueError(
                f"{piece!r} in {text[:80]!r} is out of order or names a partition twice"
            )
        if last >= below:
            raise ValueError(f"partition {last} does not exist: the topic has {below} partitions")
        pieces.append(np.arange(first, last + 1, dtype=np.int32))
        next_free = last + 1
    return np.concatenate(pieces)
