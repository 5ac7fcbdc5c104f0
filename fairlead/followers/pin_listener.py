"""Keep a group's part of the pin topic open: connect, notice that it is broken, connect again.

Belongs here: when to try, and what is wrong. Does not: what it means for a roll call that the log
was opened anew (`caller`).
"""

import logging
import time
from collections.abc import Mapping
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException

from fairlead.followers.pins import PinLog, cause_of, check_pin_topic, create_pin_topic

log = logging.getLogger(__name__)

#: What one request to the cluster may take of a caller's time.
REQUEST_S: Final = 0.5
_RETRY_S: Final = 1.0
_MISSING: Final = frozenset(
    {
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError._UNKNOWN_TOPIC,  # noqa: SLF001 - librdkafka's name
        KafkaError._UNKNOWN_PARTITION,  # noqa: SLF001
    }
)


class PinListener:
    """Opens the log, and the topic where it is missing; tries once a second at most.

    Parameters
    ----------
    group
        The group id.
    connection
        librdkafka's settings of how to reach the cluster.
    topic
        The pin topic.
    """

    def __init__(self, group: str, connection: Mapping[str, Any], topic: str) -> None:
        self.topic = topic
        self.problem: str | None = None
        self._group = group
        self._connection = connection
        self._log: PinLog | None = None
        self._retry_at = 0.0
        self._checked = False

    @property
    def log(self) -> PinLog | None:
        """The log as it was opened, whether it works or not; None: it is closed."""
        return self._log

    @property
    def works(self) -> bool:
        """Whether the log is open, and still the one that was opened."""
        return self._log is not None and self._log.broken is None

    def open(self, *, at_once: bool = False) -> bool:
        """Open the log at its end unless it works; whether it works now.

        Takes `REQUEST_S` a request at most.

        Parameters
        ----------
        at_once
            Try also when less than a second has passed since the last time.

        Raises
        ------
        ConfigurationError
            The pin topic is compacted, or is missing and may not be created.
        """
        if self.works:
            return True
        self.close()
        if at_once or time.monotonic() >= self._retry_at:
            self._open()
            self._retry_at = time.monotonic() + _RETRY_S
        return self._log is not None

    def close(self) -> None:
        """Let go of the connections."""
        if self._log is not None:
            if self._log.broken is not None:
                self._complain(self._log.broken)
            self._log.close()
            self._log = None

    def _open(self) -> None:
        try:
            self._log = PinLog.open(self._group, self._connection, self.topic, timeout_s=REQUEST_S)
            self.problem = None
            if not self._checked:
                check_pin_topic(self._connection, self.topic, timeout_s=REQUEST_S)
                self._checked = True
        except KafkaException as error:
            cause = cause_of(error)
            self._complain(cause.str())
            if cause.code() in _MISSING:
                self._create_topic()

    def _create_topic(self) -> None:
        try:
            create_pin_topic(self._connection, self.topic, timeout_s=2 * REQUEST_S)
        except KafkaException as error:
            self._complain(cause_of(error).str())

    def _complain(self, problem: str) -> None:
        problem = f"the pin topic {self.topic} cannot be used: {problem}"
        if problem != self.problem:
            log.warning("Group %s: %s; trying on", self._group, problem)
        self.problem = problem
