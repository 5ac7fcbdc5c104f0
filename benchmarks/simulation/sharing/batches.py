"""aiokafka's `getmany()`: it returns all fetched records, and the position moves past them."""

import numpy as np

from benchmarks.simulation.sharing.chunks import Chunks
from fairlead.simulation.world import Float64, Int64, Mask


class Batches(Chunks):
    """The application gets all fetched chunks as a batch, and the next batch after processing it.

    A partition is fetched again as soon as the application gets its chunk. So positions and commits
    are ahead of processing by all records that the application holds. A member that loses a
    partition, or leaves, still processes the records that it holds.
    """

    def __init__(self, turns: Int64, record_bytes: float) -> None:
        super().__init__(turns, record_bytes)
        self._partitions = turns.size
        #: For each member: its application has received all chunks whose turn is below this value.
        self._handed_out: Int64 = np.zeros(1, np.int64)

    def ahead(self) -> Float64 | None:
        """Return the number of records of each partition that applications hold."""
        held = self._held()
        partition, records = self._partition[held], self._records[held]
        return np.bincount(partition, records, self._partitions).astype(np.float64)

    def forget(self, partitions: Mask, *, handed_out: bool = False) -> None:
        """Drop fetched chunks; if `handed_out`, also the chunks that applications hold."""
        goes = partitions[self._partition]
        self._keep(~goes if handed_out else ~goes | self._held())

    def _may_be_fetched(self, owner: Int64) -> Mask:
        free = np.ones(owner.size, dtype=bool)
        free[self._partition[~self._held()]] = False
        return free

    def _may_be_worked(self, readable: Mask) -> Mask:
        """Give batches to applications without a readable chunk; return which chunks are held."""
        held = self._held()
        busy = np.zeros(self._handed_out.size, dtype=bool)
        busy[self._worker[held & readable[self._partition]]] = True
        self._handed_out = np.where(busy, self._handed_out, self._clock)
        return self._held()

    def _held(self) -> Mask:
        workers = int(self._worker.max(initial=0)) + 1
        if workers > self._handed_out.size:
            self._handed_out = np.pad(self._handed_out, (0, workers - self._handed_out.size))
        held: Mask = self._turn < self._handed_out[self._worker]
        return held
