"""Samples of a topic's records: which offsets to read, and the records that were read.

Belongs here: choosing runs (ranges of consecutive offsets) that are spread evenly over time and
partitions. Belongs elsewhere: reading the records (`fairlead.kafka.record_sample`), and estimates
from a sample (`fairlead.domain.key_shares`).
"""

from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Float64 = npt.NDArray[np.float64]
Int64 = npt.NDArray[np.int64]

#: A row has a run, a key and the number of records with this key in the run. `run` is the run's
#: number (see `Runs`). `key` is null for records without a key. Several rows may have the same run
#: and key.
CELLS: Final = pa.schema({"run": pa.int64(), "key": pa.binary(), "count": pa.int64()})
#: Minimum number of runs of each partition: with fewer, the variance between runs could not be
#: estimated.
_FEWEST: Final = 8


@dataclass(frozen=True, eq=False)
class LogWindow:
    """The part of a topic's log from which records are sampled; the topic has P partitions.

    Parameters
    ----------
    topic
        The topic's name.
    begin, end
        First offset, and the offset after the last, int64 of shape (P,).
    seconds
        Length of the window in seconds.
    """

    topic: str
    begin: Int64
    end: Int64
    seconds: float

    @property
    def spans(self) -> Int64:
        """Number of offsets in each partition, shape (P,). Some offsets may have no record."""
        return self.end - self.begin


class Runs(NamedTuple):
    """Ranges of offsets to read: in each of T turns, one range of each of P partitions.

    Run number t P + p belongs to partition p in turn t. The runs of a partition are in random
    order. So the first turns are a fair sample if reading stops early.

    Parameters
    ----------
    begin, stop
        First offset of each run, and the offset after its last, int64 of shape (T, P). Both are the
        same if a run is empty.
    """

    begin: Int64
    stop: Int64


@dataclass(frozen=True, eq=False)
class RecordSample:
    """The records that were read from a topic.

    Parameters
    ----------
    window, runs
        The sampled part of the log, and the runs that were read.
    cells
        Table of the schema `CELLS`.
    bytes, seconds
        Number of bytes that were read, and seconds that this took.
    stopped
        Whether the limit of bytes or seconds ended reading early.
    """

    window: LogWindow
    runs: Runs
    cells: pa.Table
    bytes: int
    seconds: float
    stopped: bool = False


def plan_runs(window: LogWindow, records: int, runs: int, *, seed: int = 0) -> Runs:
    """Divide each partition into equal stretches, and choose a random run of offsets in each.

    Parameters
    ----------
    window
        The part of the log to sample, with P partitions.
    records
        Number of offsets to read, divided in proportion to each partition's offsets in the window.
    runs
        Number of runs; fewer if the window is read whole, more if there are many partitions.
    seed
        Seed of the random positions.

    Examples
    --------
    >>> window = LogWindow("t", np.zeros(2, np.int64), np.array([1000, 4]), 60.0)
    >>> runs = plan_runs(window, 100, 10)
    >>> (runs.stop - runs.begin).sum(axis=0)
    array([104,   4])
    """
    spans, random = window.spans, np.random.default_rng(seed)
    turns = _FEWEST if records >= spans.sum() else max(runs // spans.size, _FEWEST)
    edges = window.begin + np.linspace(0, spans, turns + 1).astype(np.int64)
    stretches = np.diff(edges, axis=0)
    wanted = np.ceil(records * spans / spans.sum() / turns).astype(np.int64)
    lengths = np.minimum(wanted, stretches)
    begin = edges[:-1] + random.integers(0, stretches - lengths, endpoint=True)
    order = random.permuted(np.tile(np.arange(turns)[:, None], spans.size), axis=0)
    return Runs(*(np.take_along_axis(each, order, axis=0) for each in (begin, begin + lengths)))
