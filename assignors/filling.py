"""Water-filling: deal many items in one computation, each to the receiver with the lowest load.

Belongs here: the order in which receivers get items. Belongs elsewhere: which members may be
receivers.
"""

import numpy as np

from assignors.numbering import within_groups
from assignors.problem import Int64


def fill(loads: Int64, items: int) -> Int64:
    """Return the receiver of each item if every item goes to the receiver with the lowest load.

    Parameters
    ----------
    loads
        Number of items that each receiver already has, shape (K,). May be empty if `items` is 0.
    items
        Number of items to deal.

    Returns
    -------
    int64 array of shape (items,): receivers in the order of the items. Ties go to the receiver that
    got the fewest in this call, then to the first in the list.

    Notes
    -----
    The level of an item is the number of items that its receiver already has. A receiver that has l
    items at first gets items of levels l, l + 1, and so on. The triples (level, -l, receiver) in
    ascending order give the order of the receivers. O(items log items + K log K).

    Examples
    --------
    >>> fill(np.array([2, 0, 1]), 5).tolist()
    [1, 2, 1, 0, 2]
    """
    if loads.size and (loads == loads[0]).all():
        return np.arange(items) % loads.size
    # At equal levels, the receiver with the highest initial load is first, as it got fewest items.
    order = np.argsort(-loads, kind="stable")
    sorted_loads = loads[order]
    received = _received(sorted_loads, items)
    receivers = np.repeat(np.arange(loads.size), received)
    slots = (sorted_loads[receivers] + within_groups(received)) * loads.size + receivers
    slots.sort()
    receiver: Int64 = order[slots % max(loads.size, 1)]
    return receiver


def in_turns(received: Int64) -> Int64:
    """Return the receiver of each item; the items of a receiver are spread over the whole list.

    `received` is the number of items that each receiver gets. If similar items are adjacent in the
    list, each receiver gets a proportional part of each kind of items.

    Examples
    --------
    >>> in_turns(np.array([1, 3])).tolist()
    [1, 0, 1, 1]
    """
    receiver = np.repeat(np.arange(received.size), received)
    pace = (within_groups(received) + 0.5) / received[receiver]
    return receiver[np.lexsort((receiver, pace))]


def _received(loads: Int64, items: int) -> Int64:
    """Return the number of items that each receiver gets, int64 of shape (K,).

    `loads` must be in descending order.
    """
    ascending = loads[::-1].astype(np.int64)
    if not ascending.size:
        return ascending
    # cost[k] is the number of items needed to raise each of the k lowest loads to the next higher
    # load in `ascending`.
    cost = np.arange(ascending.size) * ascending - (np.cumsum(ascending) - ascending)
    raised = int(np.searchsorted(cost, items, side="right"))
    level = (int(ascending[:raised].sum()) + items) // raised
    received = np.maximum(level - loads, 0)
    reached = np.flatnonzero(loads <= level)
    received[reached[: items - int(received.sum())]] += 1
    return received
