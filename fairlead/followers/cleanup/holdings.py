"""Which partitions a consumer keeps local state for: KIP-54's listener pattern without a client.

Belongs here: what a rebalance truly takes and truly brings. Does not: a client's listener
(`kafka_python`, `aiokafka`).
"""

from collections.abc import Callable, Collection
from typing import Generic, TypeVar

Partition = TypeVar("Partition")
#: Takes partitions; what it returns, a coroutine maybe, is the client's business.
Callback = Callable[[set[Partition]], object]


class Holdings(Generic[Partition]):
    """The partitions that local state is kept for.

    An eager rebalance revokes everything and assigns most of it again. So nothing is cleaned up
    when it is revoked, only when the next assignment turns out not to have it.

    Examples
    --------
    >>> holdings = Holdings[int]()
    >>> holdings.assigned({0, 1})
    (set(), {0, 1})
    >>> holdings.assigned({1, 2})  # what is gone, what is new
    ({0}, {2})
    >>> holdings.drop({1})
    {1}
    >>> holdings.assigned({1, 2})  # somebody else may have read 1 in between
    (set(), {1})
    """

    def __init__(self) -> None:
        self._held: set[Partition] = set()

    @property
    def held(self) -> frozenset[Partition]:
        """What local state is kept for now."""
        return frozenset(self._held)

    def assigned(
        self, partitions: Collection[Partition], *, keep: Collection[Partition] = ()
    ) -> tuple[set[Partition], set[Partition]]:
        """Note an assignment; returns what is gone and what is new.

        Parameters
        ----------
        partitions
            What is assigned.
        keep
            What is held besides: a cooperative client lists only what it got.
        """
        now = {*partitions, *keep}
        gone, new = self._held - now, now - self._held
        self._held = now
        return gone, new

    def drop(self, partitions: Collection[Partition]) -> set[Partition]:
        """Note partitions that are gone for certain; returns those that state was kept for."""
        gone = self._held & set(partitions)
        self._held -= gone
        return gone
