"""Lags for a group leader that assigns by lag.

Belongs here: the time limit, and the definition of lag (KAFKA-5337). Belongs elsewhere: a client's
requests.
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

#: Map from (topic, partition) to a lag in records, or to an offset.
Lags = Mapping[Pair, int]
FetchLags = Callable[[Collection[str]], Lags]


def lags_of(begin: Lags, end: Lags, committed: Lags, connection: Mapping[str, Any]) -> Lags:
    """Return the lags of partitions in records (KAFKA-5337).

    The lag of a partition without a committed offset depends on `auto_offset_reset` in
    `connection`, a consumer's configuration.

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
    """Return the lag of each partition, by topic; an unknown lag is 0.

    Parameters
    ----------
    fetch
        Fetches the lags of some topics; called on a daemon thread.
    partition_counts
        Map from topic to its number of partitions.
    timeout_s
        Maximum seconds for which a rebalance waits. After this time, all lags count as 0.
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
    except Exception as error:  # noqa: BLE001 - the group is assigned after any error
        late = isinstance(error, FutureTimeoutError)
        why = f"no answer within {timeout_s:.0f} s" if late else f"{error!r}"
        log.warning("Lags are unknown (%s): assigning as if every lag were 0", why)
    return {
        topic: [known.get((topic, partition), 0) for partition in range(count)]
        for topic, count in partition_counts.items()
    }
