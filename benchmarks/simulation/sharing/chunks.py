"""kafka-python, Java and aiokafka's `async for`: they read one fetched chunk after another."""

import numpy as np

from benchmarks.simulation.sharing.way import TimeStep
from fairlead.simulation.world import Float64, Int64, Mask

#: Maximum size of a fetch from one partition: `max.partition.fetch.bytes`.
CHUNK_BYTES = 1 << 20
#: If fewer records than this are left of a chunk, the chunk is used up. Allows for rounding errors.
_NOTHING = 1e-6


class Chunks:
    """Members process chunks in the order in which they were fetched.

    A chunk has the records of a partition at the time of its fetch, at most 1 MiB. A partition is
    fetched again when its chunk is used up. At first, partitions are fetched in random order,
    because brokers respond in random order. Later fetches keep this order.

    Parameters
    ----------
    turns
        Rank of each partition in the first fetches, a permutation, int64 of shape (P,).
    record_bytes
        Size of a record in the log.
    """

    def __init__(self, turns: Int64, record_bytes: float) -> None:
        self._most = max(CHUNK_BYTES / record_bytes, 1.0)
        #: For each partition, the value of `_clock` when its last chunk was used up.
        self._used_up = turns - turns.size
        self._clock = 0
        # The chunks, oldest first: partition, worker (the member that fetched the chunk), turn
        # (rank in the order of fetches) and number of records.
        self._partition: Int64 = np.zeros(0, np.int64)
        self._worker: Int64 = np.zeros(0, np.int64)
        self._turn: Int64 = np.zeros(0, np.int64)
        self._records: Float64 = np.zeros(0)

    def read(self, step: TimeStep) -> Float64:
        """Let members with enough time read everything, and other members chunk after chunk."""
        left, budgets = step.waiting.copy(), step.budgets.copy()
        fetched = self._fetched(left.size)
        readable = step.readable & (step.owner < budgets.size - 1)
        unfetched = np.where(readable, np.maximum(left - fetched, 0.0), 0.0)
        ready = readable[self._partition]
        demand = np.bincount(step.owner, unfetched * step.costs, budgets.size)
        work = self._records * step.costs[self._partition] * ready
        demand += np.bincount(self._worker, work, budgets.size)
        late = demand > budgets
        through = ready & ~late[self._worker]
        left -= np.bincount(self._partition[through], self._records[through], left.size)
        caught_up = readable & ~late[step.owner]
        left -= np.where(caught_up, unfetched, 0.0)
        self._keep(~through)
        self._caught_up(caught_up)
        if late.any():
            self._work_off(step, left, budgets, readable, late)
        return step.waiting - np.maximum(left, 0.0)

    def ahead(self) -> Float64 | None:
        """Return None: applications hold less than the records of one poll."""
        return None

    def forget(self, partitions: Mask, *, handed_out: bool = False) -> None:
        """Drop chunks, as consumers do when partitions are revoked."""
        del handed_out
        self._keep(~partitions[self._partition])

    def _work_off(
        self, step: TimeStep, left: Float64, budgets: Float64, readable: Mask, late: Mask
    ) -> None:
        """Fetch and process chunks of members that are behind (`late`) until their time is up."""
        while True:
            self._fetch(left, step.owner, readable & late[step.owner])
            ready = np.flatnonzero(
                readable[self._partition] & late[self._worker] & self._may_be_worked(readable)
            )
            if not self._work(ready, left, budgets, step.costs):
                return

    def _work(self, ready: Int64, left: Float64, budgets: Float64, costs: Float64) -> bool:
        """Process chunks while time remains; return whether a chunk was used up."""
        order = ready[np.argsort(self._worker[ready], kind="stable")]
        if not order.size:
            return False
        worker, turn, partition = self._worker[order], self._turn[order], self._partition[order]
        records = self._records[order]
        work = records * costs[partition]
        # A worker processes its chunks in the order of their turns. Chunks with equal turns are
        # processed at the same time.
        starts = np.ones(order.size, dtype=bool)
        starts[1:] = (turn[1:] != turn[:-1]) | (worker[1:] != worker[:-1])
        first = np.flatnonzero(starts)
        of_turn = np.add.reduceat(work, first)
        before = np.cumsum(of_turn) - of_turn
        whose = worker[first]
        before -= before[np.searchsorted(whose, whose)]
        share = np.minimum((budgets[whose] - before) / np.maximum(of_turn, 1e-12), 1.0)
        each = np.maximum(share, 0.0)[np.cumsum(starts) - 1]
        left -= np.bincount(partition, records * each, left.size)
        budgets -= np.bincount(worker, work * each, budgets.size)
        self._records[order] -= records * each
        used_up = order[self._records[order] <= _NOTHING]
        self._used_up[self._partition[used_up]] = self._clock + np.arange(used_up.size)
        self._clock += used_up.size
        kept = np.ones(self._records.size, dtype=bool)
        kept[used_up] = False
        self._keep(kept)
        return bool(used_up.size)

    def _fetch(self, left: Float64, owner: Int64, partitions: Mask) -> None:
        """Fetch a chunk of each partition that may be fetched, the longest-waiting ones first."""
        size = np.minimum(left - self._fetched(left.size), self._most)
        may = partitions & self._may_be_fetched(owner) & (size > _NOTHING)
        chosen = np.flatnonzero(may)
        chosen = chosen[np.argsort(self._used_up[chosen], kind="stable")]
        self._append(chosen, owner[chosen], size[chosen], self._clock + np.arange(chosen.size))
        self._clock += chosen.size

    def _may_be_fetched(self, owner: Int64) -> Mask:
        """Return which partitions have no unprocessed chunk, bool of shape (P,)."""
        free = np.ones(owner.size, dtype=bool)
        free[self._partition] = False
        return free

    def _may_be_worked(self, readable: Mask) -> Mask:
        """Return which chunks the application may process now: here, all of them."""
        del readable
        return np.ones(self._records.size, dtype=bool)

    def _caught_up(self, partitions: Mask) -> None:
        """Do nothing; subclasses register which partitions were read to their ends."""

    def _fetched(self, partitions: int) -> Float64:
        return np.bincount(self._partition, self._records, partitions).astype(np.float64)

    def _append(self, partition: Int64, worker: Int64, records: Float64, turn: Int64) -> None:
        self._partition = np.concatenate((self._partition, partition))
        self._worker = np.concatenate((self._worker, worker))
        self._records = np.concatenate((self._records, records))
        self._turn = np.concatenate((self._turn, turn))

    def _keep(self, chunks: Mask) -> None:
        if not chunks.all():
            self._partition, self._worker = self._partition[chunks], self._worker[chunks]
            self._records, self._turn = self._records[chunks], self._turn[chunks]
