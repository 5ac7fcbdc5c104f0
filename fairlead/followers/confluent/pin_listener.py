"""Keep a group's part of the pin topic open, and know whether it works both ways.

Belongs here: when to try, what is wrong, and the mark that shows a log to be written and read. Does
not: what it means for a roll call that the log was opened anew (`participant`).
"""

import logging
import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

from confluent_kafka import KafkaError, KafkaException

from fairlead.followers.confluent.pin_log import Entry, PinLog, Sent
from fairlead.followers.confluent.topics import cause_of, check_pin_topic, create_pin_topic
from fairlead.followers.core.clock import Clock
from fairlead.wire.pins import Announcement, Mark, Pin, Record

log = logging.getLogger(__name__)

#: Seconds. Longest time of a request to the cluster, which a caller waits for.
REQUEST_S: Final = 0.5
#: A cluster that does not answer in time gets twice as long at each attempt, up to this factor.
MOST_PATIENT: Final = 8
_RETRY_S: Final = 1.0
#: How often to write a mark to a log that has not been shown to work: ever more seldom.
_MARK_S: Final = 1.0
_LONGEST_MARK_S: Final = 30.0
#: How long a mark may take to come back before the connections are made anew.
_BACK_S: Final = 3.0
#: How often to look whether the topic has grown.
_LOOK_S: Final = 30.0
#: Who has found the topic grown tells the others with a mark of this name: they look at once.
_LOOK: Final = "look"
_MISSING: Final = frozenset(
    {
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError._UNKNOWN_TOPIC,  # noqa: SLF001 - librdkafka's name
        KafkaError._UNKNOWN_PARTITION,  # noqa: SLF001
    }
)


class Log(Protocol):
    """A group's part of the pin topic, as `pins.PinLog` is one."""

    broken: str | None

    @property
    def identity(self) -> str:
        """The topic's id; "": unknown."""

    def append(self, record: Record) -> Sent:
        """Send a record, once."""

    def read(self, timeout_s: float) -> list[Entry]:
        """Wait at most `timeout_s` for the next records of the group."""

    def skip_to_end(self, timeout_s: float) -> None:
        """Pass over whatever stands in the log by now."""

    def look(self, timeout_s: float, *, identity: bool) -> None:
        """Ask whether this still is the group's part of the topic, and the same topic."""

    def partition_count(self, topic: str, timeout_s: float) -> int | None:
        """Ask how many partitions a topic has; None: unknown."""

    def broker_assigns(self, timeout_s: float) -> bool:
        """Ask whether the group is one of the consumer protocol; where that is unknown: no."""

    def close(self) -> None:
        """Let go of the connections."""


class PinTopic(Protocol):
    """The way to the pin topic; all raise KafkaException where no broker answers in time."""

    @property
    def name(self) -> str:
        """The topic's name."""

    def open(self, timeout_s: float) -> Log:
        """Stand at the end of the group's part of it."""

    def check(self, timeout_s: float) -> None:
        """Raise a ConfigurationError where it is compacted."""

    def create(self, timeout_s: float) -> None:
        """Create it unless it exists; raise a ConfigurationError where that is not allowed."""


@dataclass(frozen=True, repr=False)  # it holds secrets
class KafkaPinTopic:
    """The pin topic of a cluster.

    Parameters
    ----------
    group
        The group id.
    connection
        librdkafka's settings of how to reach the cluster.
    name
        The topic.
    secrets
        What the group's members seal their records with; empty: nothing.
    """

    group: str
    connection: Mapping[str, Any]
    name: str
    secrets: tuple[bytes, ...] = ()

    def open(self, timeout_s: float) -> PinLog:
        """Stand at the end of the group's part of it."""
        return PinLog.open(
            self.group, self.connection, self.name, timeout_s=timeout_s, secrets=self.secrets
        )

    def check(self, timeout_s: float) -> None:
        """Raise a ConfigurationError where it is compacted."""
        check_pin_topic(self.connection, self.name, timeout_s=timeout_s)

    def create(self, timeout_s: float) -> None:
        """Create it unless it exists; raise a ConfigurationError where that is not allowed."""
        create_pin_topic(self.connection, self.name, timeout_s=2 * timeout_s)


class PinListener:
    """Opens the log, and the topic where it is missing; tries again after a second, or longer.

    Parameters
    ----------
    group
        The group id.
    topic
        The way to the log.
    clock, rng
        What time it is, and what draws the names of marks.
    """

    def __init__(self, group: str, topic: PinTopic, clock: Clock, rng: random.Random) -> None:
        self.topic = topic.name
        self.problem: str | None = None
        self._group = group
        self._topic = topic
        self._now = clock.monotonic
        self._rng = rng
        self._log: Log | None = None
        self._retry_at = float("-inf")
        self._checked = False
        self._shown = False
        self._mark: str | None = None
        self._marked_at = self._mark_at = self._look_at = self._looked_at = 0.0
        self._strangers = False
        self._mark_s = _MARK_S
        self._patience = 1

    @property
    def log(self) -> Log | None:
        """The log as it was opened, whether it works or not; None: it is closed."""
        return self._log

    @property
    def works(self) -> bool:
        """Whether the log is open, and still the one that was opened."""
        return self._log is not None and self._log.broken is None

    @property
    def shown(self) -> bool:
        """Whether the log works, and what was written to it has been read since."""
        return self._shown and self.works

    def open(self) -> bool:
        """Open the log at its end unless it works; whether it works now.

        A request takes at most `REQUEST_S`, and longer after attempts that failed.

        Raises
        ------
        ConfigurationError
            The pin topic is compacted, or is missing and may not be created.
        """
        if self.works:
            return True
        self.close()
        if self._now() >= self._retry_at:
            self._open()
            self._retry_at = self._now() + self._patience * _RETRY_S
        return self._log is not None

    def close(self) -> None:
        """Let go of the connections."""
        closing, self._log, self._shown = self._log, None, False
        if closing is not None:
            if closing.broken is not None:
                self._complain(closing.broken)
            closing.close()

    def doubt(self, why: str) -> None:
        """Take the log for one that does not work until a mark shows that it does."""
        self._complain(why)
        self._shown, self._mark = False, None
        self._mark_at, self._mark_s = self._now() + _MARK_S, _MARK_S

    def give_up(self, why: str) -> None:
        """Let go of connections that do not work; the next are new ones."""
        self.doubt(why)
        self._patience = min(2 * self._patience, MOST_PATIENT)
        if self._log is not None:
            self._log.broken = why
        self.close()

    def skip_to_end(self) -> None:
        """Pass over whatever stands in the log by now."""
        if self._log is not None and self.works:
            self._log.skip_to_end(REQUEST_S)

    def read(self, wait_s: float) -> list[tuple[Announcement | Pin, int]]:
        """Return what members say next, and in which leader epoch, waiting so long at most.

        Looks after the log by the way, and keeps marks to itself.
        """
        pins = self._log
        if pins is None or not self.works:
            return []
        now = self._now()
        if self._mark is not None and now >= self._marked_at + self._patience * _BACK_S:
            self.give_up("what was written to it is not read again")
            return []
        if not self._shown and now >= self._mark_at:
            self._mark = f"{self._rng.getrandbits(64):016x}"
            self._marked_at, self._mark_at = now, now + self._mark_s
            self._mark_s = min(2 * self._mark_s, _LONGEST_MARK_S)
            pins.append(Mark(self._mark, pins.identity))
        if now >= self._look_at:
            self._look(pins)
        said: list[tuple[Announcement | Pin, int]] = []
        for record, epoch in pins.read(wait_s):
            if record.log != pins.identity:
                self._strangers = True
            if isinstance(record, Mark):
                self._heed(record)
            else:
                said.append((record, epoch))
        return said

    def _heed(self, mark: Mark) -> None:
        if mark.name == self._mark:
            self._shown, self._mark, self.problem = True, None, None
            self._mark_s, self._patience = _MARK_S, 1
        elif mark.name == _LOOK:
            self._look_at = min(self._look_at, self._looked_at + _RETRY_S)

    def _look(self, pins: Log) -> None:
        self._looked_at = self._now()
        self._look_at = self._looked_at + self._rng.uniform(_LOOK_S / 2, _LOOK_S)
        strangers, self._strangers = self._strangers, False
        pins.look(REQUEST_S, identity=strangers)
        if pins.broken is not None:
            pins.append(Mark(_LOOK, pins.identity))

    def _open(self) -> None:
        request_s = self._patience * REQUEST_S
        try:
            if not self._checked:
                self._topic.check(request_s)
                self._checked = True
            self._shown, self._mark, self._strangers = False, None, False
            self._mark_at, self._mark_s = self._now(), _MARK_S
            self._look_at = self._now() + self._rng.uniform(_LOOK_S / 2, _LOOK_S)
            self._log = self._topic.open(request_s)
        except KafkaException as error:
            cause = cause_of(error)
            self._complain(cause.str())
            if cause.code() in _MISSING:
                self._create_topic()
            else:
                self._patience = min(2 * self._patience, MOST_PATIENT)

    def _create_topic(self) -> None:
        try:
            self._topic.create(self._patience * REQUEST_S)
        except KafkaException as error:
            self._complain(cause_of(error).str())

    def _complain(self, problem: str) -> None:
        problem = f"the pin topic {self.topic} cannot be used: {problem}"
        if problem != self.problem:
            log.warning("Group %s: %s; trying on", self._group, problem)
        self.problem = problem
