"""Racks and log sizes of a group's partitions, from its samples.

Belongs here: values for the partitions that exist now. Belongs elsewhere: traffic between racks
(`fairlead.domain.analysis.racks`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fairlead.domain.samples import NONE

#: If the racks of a partition changed within this time, they are regarded as unknown, because
#: leaders move away and return when a broker restarts.
STEADY: Final = timedelta(minutes=15)

Int64 = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Sources:
    """Racks and log sizes of P partitions.

    Parameters
    ----------
    racks
        Maps each topic to the racks of each partition, as for `Problem.of`; empty if not known.
    log_bytes
        Size of each partition's log, int64 of shape (P,); -1: not known.
    """

    racks: Mapping[str, Sequence[Sequence[str]]]
    log_bytes: Int64


def sources_of(
    samples: pa.Table, topics: Sequence[str], counts: Mapping[str, int]
) -> Sources | None:
    """Return racks and log sizes of some topics; None if nothing is known.

    Parameters
    ----------
    samples
        One group's rows of the schema `SAMPLES`, at least one, in order of time.
    topics, counts
        Topics in the order of the result, and their present numbers of partitions.
    """
    last = samples.num_rows - 1
    if not samples["racks"][last].is_valid:
        return None
    numbers: dict[tuple[str, ...], int] = {}
    layout = samples["topics"][last], samples["counts"][last]
    now = _racks(samples, last, numbers)
    since = samples["at"][last].as_py() - STEADY
    for row in range(last - 1, -1, -1):
        if samples["at"][row].as_py() < since:
            break
        same = (samples["topics"][row], samples["counts"][row]) == layout
        if same and samples["racks"][row].is_valid:
            before = _racks(samples, row, numbers)
            now = np.where((before >= 0) & (before != now), NONE, now)
    names, sizes = list(numbers), _values(samples["log_bytes"], last)
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


def _racks(samples: pa.Table, row: int, numbers: dict[tuple[str, ...], int]) -> Int64:
    """Return a number for each partition's set of racks in a sample; -1: not known.

    `numbers` maps each set of racks to its number. This function adds new sets to it.
    """
    sets = [
        numbers.setdefault(tuple(racks), len(numbers)) for racks in samples["racks"][row].as_py()
    ]
    return np.array([*sets, NONE], dtype=np.int64)[_values(samples["rack_set"], row)]


def _values(column: pa.ChunkedArray, row: int) -> Int64:
    values: Int64 = column[row].values.to_numpy(zero_copy_only=False).astype(np.int64)
    return values
