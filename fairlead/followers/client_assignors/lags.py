"""Lags for a leader that assigns by lag.

Belongs here: the limit of the wait, and KAFKA-5337's rule. Does not: a client's requests.
"""

import logging
import threading
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import Any, Final

from fairlead.wire.partitions import Pair

log = logging.getLogger(__name__)

_TIMEOUT_S: Final = 5.0

#: Topic and partition to a lag, or to an offset.
Lags = Mapping[Pair, int]
FetchLags = Callable[[Collection[str]], Lags]


def lags_of(begin: Lags, end: Lags, committed: Lags, connection: Mapping[str, Any]) -> Lags:
    """Return partitions' lags in records, for a consumer with this configuration (KAFKA-5337).

    Without a committed offset, the lag depends on where the consumer would start.

    Examples
    --------
    >>> begin, end = (dict.fromkeys([("t", 0), ("t", 1), ("t", 2)], at) for at in (10, 100))
    >>> lags_of(begin, end, {("t", 0): 40, ("t", 1): 140}, {"auto_offset_reset": "earliest"})
    {('t', 0): 60, ('t', 1): 0, ('t', 2): 90}
    >>> lags_of(begin, end, {}, {})
    {('t', 0): 0, ('t', 1): 0, ('t', 2): 0}
    """
    latest = connection.get("auto_offset_reset", "latest") == "latest"
    start = end if latest else begin
    return {where: max(end[where] - committed.get(where, start[where]), 0) for where in begin}


def lags_in_time(
    fetch: FetchLags, partition_counts: Mapping[str, int], timeout_s: float = _TIMEOUT_S
) -> dict[str, list[int]]:
    """Return topic to the lag of each partition, 0 if it is unknown.

    Parameters
    ----------
    fetch
        Fetches the lags of some topics; called on a daemon thread.
    partition_counts
        Topic to number of partitions.
    timeout_s
        Longest wait of a rebalance; then lags count as 0.
    """
    fetched: Future[Lags] = Future()

    def run() -> None:
        try:
            fetched.set_result(fetch(partition_counts.keys()))
        except Exception as error:  # noqa: BLE001 - reported to the waiting thread
            fetched.set_exception(error)

    threading.Thread(target=run, name="fairlead-lags", daemon=True).start()
    known: Lags = {}
    try:
        known = fetched.result(timeout_s)
    except Exception as error:  # noqa: BLE001 - whatever breaks, the group is assigned
        late = isinstance(error, FutureTimeoutError)
        why = f"not within {timeout_s:.0f} s" if late else f"{error!r}"
        log.warning("Lags are unknown (%s): assigning as if there were none", why)
    return {
        topic: [known.get((topic, partition), 0) for partition in range(count)]
        for topic, count in partition_counts.items()
    }
