"""Water-filling: many items, one at a time to whoever has least, computed at once.

Belongs here: the order in which a greedy dealer would pick its receivers. Does not: who may receive
(the assignors).
"""

import numpy as np

from assignors.problem import Int64


def fill(loads: Int64, items: int) -> Int64:
    """Return who gets each of `items` items when the least-loaded is always next.

    Parameters
    ----------
    loads
        Items each of K receivers has already, shape (K,), K at least 1 unless `items` is 0.
    items
        How many are dealt.

    Returns
    -------
    int64 array of shape (items,): receiver of the first item, of the second, and so on. Ties go to
    the receiver listed first.

    Notes
    -----
    A receiver of load l takes its items at the levels l, l + 1, ...; the dealer takes the `items`
    lowest (level, receiver) pairs there are. O(items log items + K log K).

    Examples
    --------
    >>> fill(np.array([2, 0, 1]), 5).tolist()
    [1, 1, 2, 0, 1]
    """
    received = _received(loads, items)
    if loads.size and (loads == loads[0]).all():
        return np.resize(np.arange(loads.size), items)
    receivers = np.repeat(np.arange(loads.size), received)
    nth = np.arange(items) - np.repeat(np.cumsum(received) - received, received)
    slots = (loads[receivers] + nth) * loads.size + receivers
    slots.sort()
    return slots % max(loads.size, 1)


def _received(loads: Int64, items: int) -> Int64:
    """How many items each receiver ends up with, int64 of shape (K,)."""
    ascending = np.sort(loads).astype(np.int64)
    if not ascending.size:
        return ascending
    # Raising the k lowest to the level of the next one costs this much.
    cost = np.arange(ascending.size) * ascending - (np.cumsum(ascending) - ascending)
    raised = int(np.searchsorted(cost, items, side="right"))
    level = (int(ascending[:raised].sum()) + items) // raised
    received = np.maximum(level - loads, 0)
    reached = np.flatnonzero(loads <= level)
    received[reached[: items - int(received.sum())]] += 1
    return received
