"""Lags for a leader that assigns by lag, fetched while the members join.

Belongs here: the times to fetch and to wait, and KAFKA-5337's rule. Does not: fetching offsets with
a client.
"""

import logging
import threading
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import Any, Final

from fairlead.followers.core.clock import Clock
from fairlead.wire.partitions import Pair

log = logging.getLogger(__name__)

_TIMEOUT_S: Final = 5.0
#: Seconds. Maximum age of lags: a client that waits for other members may start to join again, and
#: need not fetch them again.
_STALE_S: Final = 10.0

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


class LagReader:
    """Fetches lags before a rebalance needs them.

    A member that may lead (it led last time, or joins for the first time) fetches on its own thread
    while it waits for the other members to join. So the leader waits only briefly.

    Parameters
    ----------
    fetch
        Fetches the lags of some topics; called on a daemon thread.
    timeout_s
        Longest wait of a rebalance; then lags count as 0.
    clock
        The time; default: the machine's.
    """

    def __init__(
        self, fetch: FetchLags, *, timeout_s: float = _TIMEOUT_S, clock: Clock | None = None
    ) -> None:
        self._fetch = fetch
        self._now = (clock or Clock()).monotonic
        self._timeout_s = timeout_s
        self._may_lead, self._leads = True, False
        self._topics: frozenset[str] = frozenset()
        self._fetched: Future[Lags] | None = None
        self._fetched_topics: frozenset[str] = frozenset()
        self._fetched_at = 0.0

    def joining(self, topics: Collection[str]) -> None:
        """Note the start of a join with this subscription; a client may start twice (KIP-394)."""
        if self._may_lead and not self._is_fresh():
            self._start(self._topics | frozenset(topics))

    def settled(self) -> None:
        """Note the end of a rebalance, and drop its lags."""
        self._may_lead, self._leads = self._leads, False
        self._fetched = None

    def current(self, partition_counts: Mapping[str, int]) -> dict[str, list[int]]:
        """Return topic to the lag of each partition; called on the leader."""
        deadline = self._now() + self._timeout_s
        self._leads, self._topics = True, frozenset(partition_counts)
        if not self._is_fresh() or not self._topics <= self._fetched_topics:
            self._start(self._topics)
        assert self._fetched is not None  # noqa: S101 - a fetch was just started; for mypy
        try:
            known = self._fetched.result(max(deadline - self._now(), 0.0))
        except Exception as error:  # noqa: BLE001 - whatever breaks, the group is assigned
            late = isinstance(error, FutureTimeoutError)
            why = f"not within {self._timeout_s:.0f} s" if late else f"{error!r}"
            log.warning("Lags are unknown (%s): assigning as if there were none", why)
            known = {}
        return {
            topic: [known.get((topic, partition), 0) for partition in range(count)]
            for topic, count in partition_counts.items()
        }

    def _is_fresh(self) -> bool:
        """Whether the last fetch is usable: it has not failed, and is not too old."""
        fetched = self._fetched
        if fetched is None or self._now() > self._fetched_at + _STALE_S:
            return False
        return not fetched.done() or fetched.exception() is None

    def _start(self, topics: frozenset[str]) -> None:
        fetched: Future[Lags] = Future()

        def run() -> None:
            try:
                fetched.set_result(self._fetch(topics))
            except Exception as error:  # noqa: BLE001 - reported to the waiting thread
                fetched.set_exception(error)

        self._fetched, self._fetched_topics, self._fetched_at = fetched, topics, self._now()
        threading.Thread(target=run, name="fairlead-lags", daemon=True).start()
