"""What a member has heard before it knows which generation it is in.

Belongs here: how much of it is kept. Does not: what it means (`roll_call`).
"""

from collections.abc import Iterator
from typing import Final

from fairlead.wire.pins import MOST_PARTITIONS, Announcement, Pin

#: Records, and partitions that all of them together may name: five roll calls of the largest group.
_MOST_RECORDS: Final = 10_000
_MOST_NAMED: Final = 10 * MOST_PARTITIONS


class Recollection:
    """Records of the log and the leader epochs they were written in, in order, within bounds.

    Whoever may write to the log may write much: what exceeds the bounds is not kept. A member that
    has not heard all of a generation must not announce itself in it.
    """

    def __init__(self) -> None:
        #: Whether everything has been kept since the beginning.
        self.whole = True
        self._records: list[tuple[Announcement | Pin, int]] = []
        self._named = 0

    def __iter__(self) -> Iterator[tuple[Announcement | Pin, int]]:
        """Return what is kept, in order."""
        return iter(self._records)

    def add(self, record: Announcement | Pin, epoch: int) -> None:
        """Keep the next record, if there is room."""
        self._named += _named_by(record)
        if not self.whole or len(self._records) >= _MOST_RECORDS or self._named > _MOST_NAMED:
            self.whole = False
            return
        self._records.append((record, epoch))

    def clear(self) -> None:
        """Begin anew."""
        self._records, self._named, self.whole = [], 0, True


def _named_by(record: Announcement | Pin) -> int:
    shares = [record.given] if isinstance(record, Announcement) else record.shares.values()
    return sum(len(numbers) for share in shares for numbers in share.values())
