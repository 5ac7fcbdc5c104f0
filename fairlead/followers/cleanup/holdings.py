"""Track the partitions for which a consumer has local state, as KIP-54 recommends.

Belongs here: the partitions that a rebalance removes and adds. Belongs elsewhere: a client's
listener (`kafka_python`, `aiokafka`).
"""

from collections.abc import Callable, Collection
from typing import Generic, TypeVar

Partition = TypeVar("Partition")
#: A function that is called with partitions. For aiokafka, it may be a coroutine function.
Callback = Callable[[set[Partition]], object]


class Holdings(Generic[Partition]):
    """The partitions for which a consumer has local state.

    An eager rebalance revokes all partitions and assigns most of them again. So the state of a
    revoked partition is removed only if the next assignment does not contain the partition.

    Examples
    --------
    >>> holdings = Holdings[int]()
    >>> holdings.assigned({0, 1})
    (set(), {0, 1})
    >>> holdings.assigned({1, 2})  # removed, added
    ({0}, {2})
    >>> holdings.drop({1})
    {1}
    >>> holdings.assigned({1, 2})  # another consumer may have read 1 in between
    (set(), {1})
    """

    def __init__(self) -> None:
        self._held: set[Partition] = set()

    @property
    def held(self) -> frozenset[Partition]:
        """Partitions with local state."""
        return frozenset(self._held)

    def assigned(
        self, partitions: Collection[Partition], *, keep: Collection[Partition] = ()
    ) -> tuple[set[Partition], set[Partition]]:
        """Replace the assignment; return the removed and the added partitions.

        Parameters
        ----------
        partitions
            The assigned partitions.
        keep
            Further partitions that stay assigned. Pass them if the client is cooperative, because
            its callback receives only the added partitions.
        """
        now = {*partitions, *keep}
        removed, new = self._held - now, now - self._held
        self._held = now
        return removed, new

    def drop(self, partitions: Collection[Partition]) -> set[Partition]:
        """Remove lost partitions; return those of them that had local state."""
        removed = self._held & set(partitions)
        self._held -= removed
        return removed
