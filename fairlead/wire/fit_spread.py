"""Spread the topics of partitions that `fit` places: who gets which of those that weigh the same.

Belongs here: exchanges among placements that no load tells apart. Does not: who gets how many, and
of which weight (`fit`). Java does the same, step by step (`jvm/.../Spread.java`).
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]

#: Partitions that are exchanged among each other at most.
AT_ONCE: Final = 256
#: Pairs of topic and member that are counted at most; beyond, all stays as it was dealt.
PAIRS: Final = 1 << 24
#: More than anybody has of a topic.
_TAKEN: Final = 1 << 30


@dataclass(frozen=True, eq=False)
class Held:
    """What the members that read the same topics have of each: T topics, M members.

    Parameters
    ----------
    counts
        Partitions of each topic on each member, int32 of shape (T, M).
    even
        Of each topic, the fewest that the largest share can be: int64 of shape (T,), 1 or more.
    """

    counts: Int32
    even: Int64

    def exchange(self, topics: Int64, members: Int64) -> Int64:
        """Exchange partitions of one weight so that members have no more of a topic than need be.

        They are gone through by turns over their topics. Each gets, of the members that they were
        dealt to, the one that has the fewest partitions of its topic; among equals who was dealt
        to first. All is left as it was where no share is larger than even, or where that comes
        neither to a smaller largest share nor, at the same, to a smaller sum of squares: topics are
        never spread less.

        Parameters
        ----------
        topics, members
            Of each of K partitions of one weight, in the order in which they were dealt, where
            those of one topic stand together: row and column of `counts`; int64 of shape (K,).

        Returns
        -------
        Whom each partition goes to in the end, as `members`; `counts` are kept true.

        Notes
        -----
        O(K x `AT_ONCE`).

        Examples
        --------
        Member 0 has three of topic 0 already, member 1 three of topic 1; each gets one of them.

        >>> held = Held(np.array([[4, 0], [0, 4]], np.int32), np.array([2, 2]))
        >>> held.exchange(np.array([0, 1]), np.array([0, 1])).tolist(), held.counts.tolist()
        ([1, 0], [[3, 1], [1, 3]])
        """
        final = members.copy()
        order = _by_turns(topics)
        for start in range(0, order.size, AT_ONCE):
            taken = order[start : start + AT_ONCE]
            final[taken] = self._exchanged(topics[taken], members[taken])
        return final

    def _exchanged(self, topics: Int64, members: Int64) -> Int64:
        rows, row_of = np.unique(topics, return_inverse=True)
        columns, column_of = np.unique(members, return_inverse=True)
        place = np.ix_(rows, columns)
        before = self.counts[place]
        cost = self._cost(rows, before)
        if cost[0] <= 1:
            return members
        after = before.copy()
        np.subtract.at(after, (row_of, column_of), 1)
        given = _dealt(after, row_of, column_of)
        if self._cost(rows, after) >= cost:
            return members
        self.counts[place] = after
        dealt: Int64 = columns[given]
        return dealt

    def _cost(self, rows: Int64, counts: Int32) -> tuple[float, int]:
        worst = (counts / self.even[rows][:, None]).max()
        return float(worst), int((counts.astype(np.int64) ** 2).sum())


def _by_turns(topics: Int64) -> Int64:
    """Return the order that takes the first of every topic, then the second of every topic."""
    first = np.flatnonzero(np.diff(topics, prepend=-1))
    turn = np.arange(topics.size) - np.repeat(first, np.diff(first, append=topics.size))
    return np.argsort(turn, kind="stable")


def _dealt(counts: Int32, rows: Int64, columns: Int64) -> Int64:
    """Give each partition, of `rows`, one of `columns`; each of these once. Counts on."""
    have = counts[:, columns]
    same = columns == columns[:, None]
    given = np.empty_like(columns)
    for at, row in enumerate(rows.tolist()):
        slot = int(have[row].argmin())
        given[at] = columns[slot]
        counts[row, columns[slot]] += 1
        have[row, same[slot]] += 1
        have[:, slot] = _TAKEN
    return given
