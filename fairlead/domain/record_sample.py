"""A sample of a topic's records: its plan and its result.

Belongs here: choosing runs of offsets that are spread evenly over time and partitions. Does not:
reading them (`fairlead.kafka.record_sample`, `fairlead.spark.record_sample`), nor what follows from
a sample (`fairlead.domain.key_shares`).
"""

from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Float64 = npt.NDArray[np.float64]
Int64 = npt.NDArray[np.int64]

#: How often each key occurs in each run; null: records without a key.
CELLS: Final = pa.schema({"run": pa.int64(), "key": pa.binary(), "count": pa.int64()})
#: Minimum number of runs of a partition: fewer do not show how much runs differ.
_FEWEST: Final = 8


@dataclass(frozen=True, eq=False)
class LogWindow:
    """The part of a topic's log that is sampled, which has P partitions.

    Parameters
    ----------
    topic
        Its name.
    begin, end
        First offset, and the one after the last, int64 of shape (P,).
    seconds
        Length of the window.
    """

    topic: str
    begin: Int64
    end: Int64
    seconds: float

    @property
    def spans(self) -> Int64:
        """Offsets of each partition, shape (P,); not each has a record that can be read."""
        return self.end - self.begin


class Runs(NamedTuple):
    """Runs of offsets, int64 of shape (R,), in the order in which they are read.

    The first ones are spread evenly as well, in case reading stops early.

    Parameters
    ----------
    turn
        Runs of the same turn are of different partitions, and can be read together. Ascending.
    partition, begin, stop
        The partition, its first offset, and the one after its last.
    """

    turn: Int64
    partition: Int64
    begin: Int64
    stop: Int64

    def first(self, count: int) -> "Runs":
        """Return the first runs."""
        return Runs(*(column[:count] for column in self))

    def turns(self) -> list[Int64]:
        """Return the indexes of the runs of each turn."""
        if not self.turn.size:
            return []
        return np.split(np.arange(self.turn.size), np.flatnonzero(np.diff(self.turn)) + 1)


@dataclass(frozen=True, eq=False)
class RecordSample:
    """What was read of a topic.

    Parameters
    ----------
    window, runs
        What was sampled, and which runs were read.
    cells
        Table of the schema `CELLS`; `run` is an index into `runs`.
    bytes, seconds
        What reading took.
    record_bytes
        Mean size of a record as it is stored, compressed.
    reader
        `the client` or `Spark`.
    stopped
        The limit that ended reading early; "": none.
    """

    window: LogWindow
    runs: Runs
    cells: pa.Table
    bytes: int
    seconds: float
    record_bytes: float
    reader: str = "the client"
    stopped: str = ""


def plan_runs(
    window: LogWindow, records: float, runs: int, *, partition: int | None = None, seed: int = 0
) -> Runs:
    """Choose runs of offsets, one at random in each of equal stretches of a partition.

    Parameters
    ----------
    window
        With P partitions.
    records
        Offsets to read, dealt to partitions by their share of the window.
    runs
        Runs in all; more if that leaves a partition fewer than `_FEWEST`.
    partition
        Gets half of the records; None: no partition is preferred.

    Examples
    --------
    >>> window = LogWindow("t", np.zeros(2, np.int64), np.array([1000, 4]), 60.0)
    >>> runs = plan_runs(window, 100, 10)
    >>> int((runs.stop - runs.begin)[runs.partition == 0].sum())
    104
    """
    spans = window.spans.astype(np.float64)
    wanted = records * spans / max(spans.sum(), 1.0)
    if partition is not None:
        wanted /= 2
        wanted[partition] += records / 2
    wanted = np.minimum(np.ceil(wanted), spans)
    each = max(runs // max(int((spans > 0).sum()), 1), _FEWEST)
    random, chosen = np.random.default_rng(seed), [np.zeros((4, 0), np.int64)]
    for place in np.flatnonzero(wanted).tolist():
        # What is read whole is read in few runs: nothing is left to estimate.
        number = int(min(each if wanted[place] < spans[place] else _FEWEST, wanted[place]))
        edges = np.linspace(window.begin[place], window.end[place], number + 1).astype(np.int64)
        length = np.minimum(int(np.ceil(wanted[place] / number)), np.diff(edges))
        begin = edges[:-1] + (random.random(number) * (np.diff(edges) - length + 1)).astype(int)
        turn = random.permutation(number) * each // number
        chosen.append(np.stack([turn, np.full(number, place), begin, begin + length]))
    every = np.concatenate(chosen, axis=1)
    return Runs(*every[:, np.argsort(every[0], kind="stable")])
