"""Where a group's partitions are fetched from, as its looks know: from rows to arrays.

Belongs here: laying racks and sizes of logs out over the partitions that exist now. Does not: what
traffic between racks comes to (`fairlead.domain.analysis.racks`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fairlead.domain.samples import NONE

#: Leaders move when a broker restarts, and come back: racks that have changed since are not known.
STEADY: Final = timedelta(minutes=15)

Int64 = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Sources:
    """Where P partitions are fetched from.

    Parameters
    ----------
    racks
        Topic to the racks of each of its partitions, as `Problem.of` takes them; none: not known.
    log_bytes
        Size of each partition's log, int64 of shape (P,); -1: not known.
    """

    racks: Mapping[str, Sequence[Sequence[str]]]
    log_bytes: Int64


def sources_of(looks: pa.Table, topics: Sequence[str], counts: Mapping[str, int]) -> Sources | None:
    """Return what looks know of some topics; None: nothing.

    Parameters
    ----------
    looks
        One group's rows of the schema `SAMPLES`, at least one, by time.
    topics, counts
        Those that are read now, in the order of the arrays, and their numbers of partitions.
    """
    last = looks.num_rows - 1
    if not looks["racks"][last].is_valid:
        return None
    numbers: dict[tuple[str, ...], int] = {}
    layout = looks["topics"][last], looks["counts"][last]
    now = _racks(looks, last, numbers)
    since = looks["at"][last].as_py() - STEADY
    for row in range(last - 1, -1, -1):
        if looks["at"][row].as_py() < since:
            break
        if (looks["topics"][row], looks["counts"][row]) == layout and looks["racks"][row].is_valid:
            before = _racks(looks, row, numbers)
            now = np.where((before >= 0) & (before != now), NONE, now)
    names, sizes = list(numbers), _values(looks["log_bytes"], last)
    firsts = np.cumsum([0, *layout[1].as_py()]).tolist()
    starts = dict(zip(layout[0].as_py(), firsts, strict=False))
    places = [np.arange(starts[topic], starts[topic] + counts[topic]) for topic in topics]
    return Sources(
        racks={
            topic: [names[number] if number >= 0 else () for number in now[mine].tolist()]
            for topic, mine in zip(topics, places, strict=True)
        },
        log_bytes=sizes[np.concatenate([np.empty(0, np.int64), *places])],
    )


def _racks(looks: pa.Table, row: int, numbers: dict[tuple[str, ...], int]) -> Int64:
    """Return the number of each partition's set of racks in a look; -1: it was not known."""
    sets = [numbers.setdefault(tuple(racks), len(numbers)) for racks in looks["racks"][row].as_py()]
    return np.array([*sets, NONE], dtype=np.int64)[_values(looks["rack_set"], row)]


def _values(column: pa.ChunkedArray, row: int) -> Int64:
    values: Int64 = column[row].values.to_numpy(zero_copy_only=False).astype(np.int64)
    return values
