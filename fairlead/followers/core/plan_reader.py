"""Tail the plan topic in the background, so that the plan is at hand when a rebalance comes.

Belongs here: the thread, its life, and what "up to date" means. Does not: what a record means
(`plan_cache`), nor how a client library fetches it: that is a `PlanSource`.
"""

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final, Protocol

from fairlead.followers.core.clock import Clock
from fairlead.followers.core.plan_cache import PlanCache, PlanRecord, PlanState
from fairlead.wire.record import Identity, Origin

log = logging.getLogger(__name__)

_READ_S: Final = 0.5
#: How often to look whether the plan topic has grown, or was made anew.
_LOOK_S: Final = 30.0
_FIRST_BACKOFF_S: Final = 0.5
_LONGEST_BACKOFF_S: Final = 30.0
_NOT_READ: Final = "the plan topic has not been read to its end yet"
_MOVED: Final = "the plan topic has grown or was made anew: this group's plans stand elsewhere now"
_NO_TOPIC: Final = "the plan topic does not exist, or may not be read"


class PlanSource(Protocol):
    """The one partition of the plan topic that holds a group's key, read from its beginning."""

    @property
    def origin(self) -> Origin:
        """Where records are read: the topic, and what the client knows of cluster and log."""

    def read(self, timeout_s: float) -> Sequence[PlanRecord]:
        """Wait at most `timeout_s` for the next records."""

    def moved(self) -> bool:
        """Whether the topic has grown, so that the group's key lands in another partition.

        Or was made anew, where the client does not say so by itself.
        """

    def at_end(self) -> bool:
        """Whether everything that was in the partition when it was opened has been read."""

    def close(self) -> None:
        """Let go of the connection."""


#: Waits under a lock, as `threading.Condition.wait_for` does, until something holds or it has taken
#: too long; returns whether it holds.
Wait = Callable[[threading.Condition, Callable[[], bool], float], bool]


class PlanReader:
    """Keeps one group's plan current on a daemon thread, for one or several followers.

    Each connection reads the partition from its beginning into a cache of its own, which counts
    from when it has got to the end; until then the last good plan of the one before stays. What
    was known before the connection, the cache goes on from.

    Parameters
    ----------
    group
        The group id, for the log.
    open_source
        Connects, or returns None where the plan topic does not exist: then there is no plan.
        Called on the thread, again after each failure, with growing pauses.
    new_cache
        Makes the cache for a connection, from where that reads and what was known before.
    on_tick
        Called on the thread after each read.
    clock
        What time it is; default: the machine's.
    read_s
        How long to wait for records at a time.
    wait
        How `current` waits for what this reads.
    """

    def __init__(
        self,
        group: str,
        open_source: Callable[[], PlanSource | None],
        new_cache: Callable[[Origin, PlanState], PlanCache],
        on_tick: Callable[[], None],
        *,
        clock: Clock | None = None,
        read_s: float = _READ_S,
        wait: Wait = threading.Condition.wait_for,
    ) -> None:
        self._group = group
        self._now = (clock or Clock()).monotonic
        self._open_source = open_source
        self._new_cache = new_cache
        self._on_tick = on_tick
        self._read_s = read_s
        self._wait = wait
        self._progress = threading.Condition()
        self._state = PlanState(problem=_NOT_READ)
        self._caught_up = False
        self._source: PlanSource | None = None
        self._cache: PlanCache | None = None
        self._at_end = False
        self._look_at = self._connecting_at = 0.0
        self._backoff_s = _FIRST_BACKOFF_S
        self._known_problem: str | None = None
        self._stopping = threading.Event()
        self._users = 0
        self._thread = threading.Thread(
            target=self._run, name=f"fairlead-plans-{group}", daemon=True
        )

    @property
    def state(self) -> PlanState:
        """The plan as known now."""
        return self._state

    @property
    def caught_up(self) -> bool:
        """Whether the topic has been read to its end since the start."""
        return self._caught_up

    def start(self) -> None:
        """Begin to read."""
        self.serve()

    def serve(self) -> bool:
        """Read for one more follower; False: the last one has left, and this does not read."""
        with self._progress:
            if self._stopping.is_set():
                return False
            if not self._users:
                self._thread.start()
            self._users += 1
            return True

    def stop(self) -> None:
        """Stop reading, once as many followers say so as this serves; does not wait."""
        with self._progress:
            self._users -= 1
            if self._users <= 0:
                self._stopping.set()

    def close(self) -> None:
        """Stop reading likewise; the last returns when the connection is closed, in a second."""
        self.stop()
        reading = self._thread.is_alive() and self._thread is not threading.current_thread()
        if reading and self._stopping.is_set():
            self._thread.join(timeout=5)

    def current(self, *, at_least: Identity, timeout_s: float) -> PlanState:
        """Return the plan, waiting only where the cache is known to be behind.

        Parameters
        ----------
        at_least
            A record that somebody has read; the cache is behind until it has got there.
        timeout_s
            How long to wait; then the state is whatever is known.
        """
        with self._progress:
            if not self._wait(
                self._progress,
                lambda: self._caught_up and self._state.seen.rank >= at_least.rank,
                timeout_s,
            ):
                log.warning(
                    "Group %s: the plan topic was not read to its end within %.1f s; deciding with "
                    "what is known. Look for connection errors of the plan reader",
                    self._group,
                    timeout_s,
                )
            return self._state

    def advance(self, read_s: float) -> float:
        """Do what is next: connect, or read what there is; returns how long to pause before more.

        Parameters
        ----------
        read_s
            How long to wait for records.
        """
        try:
            problem = self._connect() if self._source is None else self._read_on(read_s)
        except Exception as error:  # noqa: BLE001 - whatever breaks, the consumer goes on
            problem = f"{type(error).__name__}: {error}; the last good plan stays"
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
            self._stopping.set()  # whatever has ended it: who comes next has another reader
            self._disconnect()

    def _connect(self) -> str | None:
        """Begin to read. Returns why there is nothing to read, if so."""
        self._connecting_at = self._now()
        source = self._open_source()
        if source is None:
            self._publish(replace(self._state, problem=_NO_TOPIC))  # a lease says for how long
            return _NO_TOPIC
        self._source = source
        log.info("Group %s: reading plans from %s", self._group, source)
        self._cache, self._at_end = self._new_cache(source.origin, self._state), False
        self._look_at = self._now() + _LOOK_S
        return None

    def _read_on(self, read_s: float) -> str | None:
        """Read what there is. Returns why to connect anew, if so."""
        source, cache = self._source, self._cache
        assert source is not None and cache is not None  # noqa: S101, PT018 - connected, both
        if self._now() >= self._look_at:
            if source.moved():
                return _MOVED
            self._look_at = self._now() + _LOOK_S
        for record in source.read(read_s):
            cache.apply(record)
        self._at_end = self._at_end or source.at_end()
        if self._at_end and not (self._caught_up and cache.state is self._state):
            self._publish(cache.state)
        self._on_tick()
        return None

    def _disconnect(self) -> None:
        source, self._source = self._source, None
        if source is None:
            return
        try:
            source.close()
        except Exception:  # what breaks as it is let go must not end the reading
            log.debug("Group %s: a connection did not close well", self._group, exc_info=True)

    def _publish(self, state: PlanState) -> None:
        with self._progress:
            self._state = state
            self._caught_up = True
            self._progress.notify_all()
