"""Read the plan topic in the background, so that the plan is known when a rebalance begins.

Belongs here: the thread, connections, and whether the plan is up to date. Belongs elsewhere: the
meaning of records (`plan_cache`), and fetching records (each client's `PlanSource`).
"""

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final, Protocol

from fairlead.followers.core.clock import Clock
from fairlead.followers.core.plan_cache import PlanCache, PlanRecord, PlanState
from fairlead.wire.record import Identity, Origin
from fairlead.wire.signing import Verifier

log = logging.getLogger(__name__)

_READ_S: Final = 0.5
#: Seconds between two checks whether the plan topic got more partitions or was replaced.
_CHECK_S: Final = 30.0
_FIRST_BACKOFF_S: Final = 0.5
_LONGEST_BACKOFF_S: Final = 30.0
_NOT_READ: Final = "the plan topic has not been read to its end yet"
_MOVED: Final = "the plan topic has grown or was created again: reading the group's new partition"
_NO_TOPIC: Final = "the plan topic does not exist, or may not be read"


class PlanSource(Protocol):
    """The partition of the plan topic that contains a group's records, read from its beginning."""

    @property
    def origin(self) -> Origin:
        """The topic's name, and the ids of cluster and topic if the client knows them."""

    def read(self, timeout_s: float) -> Sequence[PlanRecord]:
        """Return the next records, waiting at most `timeout_s`."""

    def moved(self) -> bool:
        """Whether the topic was replaced, or the group belongs to another partition now."""

    def at_end(self) -> bool:
        """Whether all records have been read that existed when the connection was opened."""

    def close(self) -> None:
        """Close the connection."""


class PlanReader:
    """Reads one group's plans on a daemon thread, for one or several plan followers.

    Each connection creates a cache with the previous state, and applies all records of the
    partition to it. Until all records have been read, plan followers keep the last valid plan.

    Parameters
    ----------
    group
        The group id, for log messages.
    open_source
        Connects; returns None if the plan topic does not exist or is not readable. The thread calls
        this function at the start, and again after each failure, with growing pauses.
    verifier
        Checks signatures; None: records need no signature.
    on_tick
        Called on the thread after each read.
    clock
        The time source; default: the machine's clock.
    read_s
        Longest wait for records in one read, in seconds.
    """

    def __init__(
        self,
        group: str,
        open_source: Callable[[], PlanSource | None],
        verifier: Verifier | None,
        on_tick: Callable[[], None],
        *,
        clock: Clock | None = None,
        read_s: float = _READ_S,
    ) -> None:
        self._group = group
        self._now = (clock or Clock()).monotonic
        self._open_source = open_source
        self._verifier = verifier
        self._on_tick = on_tick
        self._read_s = read_s
        self._progress = threading.Condition()
        #: The present state of the plan.
        self.state = PlanState(problem=_NOT_READ)
        #: Whether the topic has been read to its end at least once; True if there is no topic.
        self.caught_up = False
        self._source: PlanSource | None = None
        self._cache: PlanCache | None = None
        self._at_end = False
        self._check_at = self._connecting_at = 0.0
        self._backoff_s = _FIRST_BACKOFF_S
        self._known_problem: str | None = None
        self._stopping = threading.Event()
        self._users = 0
        self._thread = threading.Thread(
            target=self._run, name=f"fairlead-plans-{group}", daemon=True
        )

    def serve(self) -> bool:
        """Add a plan follower, and start the thread if it is the first.

        Return False if the reader has stopped, because a stopped reader cannot be started again.
        """
        with self._progress:
            if self._stopping.is_set():
                return False
            if not self._users:
                self._thread.start()
            self._users += 1
            return True

    def stop(self) -> None:
        """Remove a plan follower.

        If it was the last, stop the thread, without waiting for its end.
        """
        with self._progress:
            self._users -= 1
            if self._users <= 0:
                self._stopping.set()

    def close(self) -> None:
        """Remove a plan follower. If it was the last, wait until the connection is closed.

        This takes about a second, and at most five.
        """
        self.stop()
        reading = self._thread.is_alive() and self._thread is not threading.current_thread()
        if reading and self._stopping.is_set():
            self._thread.join(timeout=5)

    def current(self, *, at_least: Identity, timeout_s: float) -> PlanState:
        """Wait until the topic has been read, including the record `at_least`; return the state.

        Parameters
        ----------
        at_least
            The newest record that any member of the group has read.
        timeout_s
            Longest wait; after it, the returned state may be older than `at_least`.
        """
        with self._progress:
            if not self._progress.wait_for(
                lambda: self.caught_up and self.state.seen.rank >= at_least.rank, timeout_s
            ):
                log.warning(
                    "Group %s: the plan topic was not read to its end within %.1f s; using the "
                    "newest plan read so far. Look for connection errors of the plan reader",
                    self._group,
                    timeout_s,
                )
            return self.state

    def advance(self, read_s: float) -> float:
        """Connect, or read the next records; return the seconds to pause before the next call.

        Parameters
        ----------
        read_s
            Seconds to wait for records.
        """
        try:
            problem = self._connect() if self._source is None else self._read_on(read_s)
        except Exception as error:  # noqa: BLE001 - the consumer continues after any error
            problem = f"{type(error).__name__}: {error}; the last valid plan stays in force"
        if problem is None:
            return 0.0
        self._disconnect()
        if problem != self._known_problem:
            log.warning("Group %s: cannot read plans, trying again: %s", self._group, problem)
        self._known_problem = problem
        if self._now() - self._connecting_at > _LONGEST_BACKOFF_S:
            self._backoff_s = _FIRST_BACKOFF_S
        pause_s, self._backoff_s = self._backoff_s, min(2 * self._backoff_s, _LONGEST_BACKOFF_S)
        return pause_s

    def _run(self) -> None:
        try:
            while not self._stopping.is_set():
                if pause_s := self.advance(self._read_s):
                    self._stopping.wait(pause_s)
        finally:
            # Do this after an error, too, so that later plan followers create another reader.
            self._stopping.set()
            self._disconnect()

    def _connect(self) -> str | None:
        """Connect; return the problem if there is no readable plan topic, else None."""
        self._connecting_at = self._now()
        source = self._open_source()
        if source is None:
            self._publish(replace(self.state, problem=_NO_TOPIC))  # followers keep the last plan
            return _NO_TOPIC
        self._source = source
        log.info("Group %s: reading plans from %s", self._group, source)
        self._cache = PlanCache(self._group, source.origin, self._verifier, known=self.state)
        self._at_end = False
        self._check_at = self._now() + _CHECK_S
        return None

    def _read_on(self, read_s: float) -> str | None:
        """Read the next records; return the reason to connect again, or None."""
        source, cache = self._source, self._cache
        assert source is not None and cache is not None  # noqa: S101, PT018 - both are set while connected
        if self._now() >= self._check_at:
            if source.moved():
                return _MOVED
            self._check_at = self._now() + _CHECK_S
        for record in source.read(read_s):
            cache.apply(record)
        self._at_end = self._at_end or source.at_end()
        if self._at_end and not (self.caught_up and cache.state is self.state):
            self._publish(cache.state)
        self._on_tick()
        return None

    def _disconnect(self) -> None:
        source, self._source = self._source, None
        if source is None:
            return
        try:
            source.close()
        except Exception:  # an error while closing must not end the thread
            log.debug("Group %s: a connection did not close well", self._group, exc_info=True)

    def _publish(self, state: PlanState) -> None:
        with self._progress:
            self.state = state
            self.caught_up = True
            self._progress.notify_all()
