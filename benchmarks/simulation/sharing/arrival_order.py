"""librdkafka: it fetches ahead, and returns records in the order in which they were fetched."""

import numpy as np

from benchmarks.simulation.sharing.chunks import Chunks
from fairlead.simulation.world import Float64, Int64, Mask

#: Limits of a consumer's queue: `queued.max.messages.kbytes` and `queued.min.messages`.
QUEUE_BYTES = 64 << 20
QUEUE_RECORDS = 100_000


class ArrivalOrder(Chunks):
    """Each member fetches while its queue has less than 64 MiB and fewer than 100,000 records.

    After a partition has been fetched to its end, each further fetch returns the records that have
    arrived since the previous fetch. All such partitions are read at the same time. Partitions that
    are further behind are read one after another, in chunks of 1 MiB.
    """

    def __init__(self, turns: Int64, record_bytes: float) -> None:
        super().__init__(turns, record_bytes)
        self._holds = min(QUEUE_BYTES / record_bytes, QUEUE_RECORDS)
        #: Whether each partition was fetched to its end.
        self._follows: Mask = np.zeros(turns.size, dtype=bool)

    def forget(self, partitions: Mask, *, handed_out: bool = False) -> None:
        """Drop the chunks of partitions, and regard the partitions as not fetched to their ends."""
        super().forget(partitions, handed_out=handed_out)
        self._follows[partitions] = False

    def _fetch(self, left: Float64, owner: Int64, partitions: Mask) -> None:
        before = self._records.size
        super()._fetch(left, owner, partitions)
        follow = self._follows[self._partition[before:]]
        self._turn[before:][follow] = self._clock
        last = before + np.argsort(follow, kind="stable")
        for chunks in (self._partition, self._worker, self._turn, self._records):
            chunks[before:] = chunks[last]
        self._clock += 1
        remains = left - self._fetched(left.size) > 0.5
        self._follows = np.where(partitions, ~remains, self._follows)

    def _may_be_fetched(self, owner: Int64) -> Mask:
        held = np.bincount(self._worker, self._records, owner.max(initial=0) + 1)
        room: Mask = held[owner] < self._holds
        return room

    def _caught_up(self, partitions: Mask) -> None:
        self._follows |= partitions
