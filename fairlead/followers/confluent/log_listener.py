"""Keep a group's part of the coordination topic open, and confirm that reads and writes work.

Belongs here: opening, reconnecting, reporting problems, and test records. Belongs elsewhere: the
consequences of a new log for a member (`member`), and requests to Kafka (`agreement_log`).

A test record (`Mark`) has a random name. When a member reads the test record that it has written,
the log is confirmed.
"""

import logging
import random
from typing import Final

from confluent_kafka import KafkaError, KafkaException

from fairlead.common.librdkafka import kafka_error
from fairlead.followers.confluent.agreement_log import AgreementLog, Entry, KafkaCoordinationTopic
from fairlead.followers.core.clock import Clock
from fairlead.wire.agreement import Mark

log = logging.getLogger(__name__)

#: Seconds. Time-out of a request to the cluster; the application's `poll` waits for the response.
REQUEST_S: Final = 0.5
#: Time-outs and pauses double after each failure, up to this multiple of their first value.
MOST_PATIENT: Final = 8
#: Seconds between two attempts to open the coordination log.
_RETRY_S: Final = 1.0
#: Seconds between two test records while the log is not confirmed; doubled each time, up to
#: `_LONGEST_MARK_S`.
_MARK_S: Final = 1.0
_LONGEST_MARK_S: Final = 30.0
#: Seconds. If a member does not read its own test record within this time, it connects again.
_READ_BACK_S: Final = 3.0
#: Seconds. Longest time between two checks whether the topic got more partitions or was replaced.
_CHECK_S: Final = 30.0
#: A test record with this name asks all members to check the topic immediately.
_CHECK_NOW: Final = "look"
_MISSING: Final = frozenset(
    {
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError._UNKNOWN_TOPIC,
        KafkaError._UNKNOWN_PARTITION,
    }
)


class LogListener:
    """Opens a member's coordination log, creates a missing topic, and reconnects with back-off.

    Parameters
    ----------
    group
        The group id.
    topic
        The coordination topic, which contains the log.
    clock
        The time source.
    rng
        Generates the names of test records, and random times for checks of the topic.
    """

    def __init__(
        self, group: str, topic: KafkaCoordinationTopic, clock: Clock, rng: random.Random
    ) -> None:
        #: Why the last attempt to use the coordination log failed; None: the attempt succeeded.
        self.problem: str | None = None
        self._group = group
        self._topic = topic
        self._now = clock.monotonic
        self._rng = rng
        #: The open coordination log, even if it does not work; None: no log is open.
        self.log: AgreementLog | None = None
        self._retry_at = float("-inf")
        self._settings_checked = False
        self._confirmed = False
        #: Name of the test record that this member has written but not read yet; None: none.
        self._mark: str | None = None
        self._marked_at = self._mark_at = self._check_at = self._checked_at = 0.0
        self._mark_s = _MARK_S
        self._patience = 1

    @property
    def works(self) -> bool:
        """Whether the coordination log is open and can be used."""
        return self.log is not None and self.log.broken is None

    @property
    def confirmed(self) -> bool:
        """Whether the log works, and this member has read the last test record that it wrote."""
        return self._confirmed and self.works

    def open(self) -> None:
        """Open the coordination log at its end, unless it is already open and works.

        Makes up to three requests. Each takes at most `REQUEST_S`, or a multiple of it after
        failures.

        Raises
        ------
        ConfigurationError
            The coordination topic is compacted, or is missing and this client is not permitted to
            create it.
        """
        if self.works:
            return
        self.close()
        if self._now() >= self._retry_at:
            self._open()
            self._retry_at = self._now() + self._patience * _RETRY_S

    def close(self) -> None:
        """Close the connections."""
        closing, self.log, self._confirmed = self.log, None, False
        if closing is not None:
            if closing.broken is not None:
                self._report(closing.broken)
            closing.close()

    def confirm(self, *, after_s: float = 0.0) -> None:
        """Write a test record after `after_s`. The log is unconfirmed until the record is read."""
        self._confirmed, self._mark = False, None
        self._mark_at, self._mark_s = self._now() + after_s, _MARK_S

    def doubt(self, problem: str) -> None:
        """Report a problem, and require a new test record to confirm the log."""
        self._report(problem)
        self.confirm(after_s=_MARK_S)

    def give_up(self, problem: str) -> None:
        """Close connections that do not work; `open` creates new connections."""
        self.doubt(problem)
        self._patience = min(2 * self._patience, MOST_PATIENT)
        if self.log is not None:
            self.log.broken = problem
        self.close()

    def read(self, wait_s: float) -> list[Entry]:
        """Return the next records, without test records except the one that confirms the log.

        Waits at most `wait_s`. If a test record is due, this method also writes the test record; if
        a check of the topic is due, it also checks the topic.
        """
        agreement_log = self.log
        if agreement_log is None or not self.works:
            return []
        now = self._now()
        if self._mark is not None and now >= self._marked_at + self._patience * _READ_BACK_S:
            self.give_up("records that were written to it cannot be read")
            return []
        if not self._confirmed and now >= self._mark_at:
            self._mark = f"{self._rng.getrandbits(64):016x}"
            self._marked_at, self._mark_at = now, now + self._mark_s
            self._mark_s = min(2 * self._mark_s, _LONGEST_MARK_S)
            agreement_log.append(Mark(self._mark, agreement_log.identity))
        if now >= self._check_at:
            self._check(agreement_log)
        return [
            entry
            for entry in agreement_log.read(wait_s)
            if not isinstance(entry.record, Mark) or self._accept(entry.record)
        ]

    def _accept(self, mark: Mark) -> bool:
        """Process a test record; return whether it confirms the log."""
        if mark.name == self._mark:
            self._confirmed, self._mark, self.problem = True, None, None
            self._mark_s, self._patience = _MARK_S, 1
            return True
        if mark.name == _CHECK_NOW:
            self._check_at = min(self._check_at, self._checked_at + _RETRY_S)
        return False

    def _check(self, agreement_log: AgreementLog) -> None:
        self._checked_at = self._now()
        self._check_at = self._checked_at + self._rng.uniform(_CHECK_S / 2, _CHECK_S)
        agreement_log.check(REQUEST_S)
        if agreement_log.broken is not None:
            agreement_log.append(Mark(_CHECK_NOW, agreement_log.identity))

    def _open(self) -> None:
        request_s = self._patience * REQUEST_S
        try:
            if not self._settings_checked:
                self._topic.check(request_s)
                self._settings_checked = True
            self.confirm()
            self._check_at = self._now() + self._rng.uniform(_CHECK_S / 2, _CHECK_S)
            self.log = self._topic.open(request_s)
        except KafkaException as error:
            cause = kafka_error(error)
            self._report(cause.str())
            if cause.code() in _MISSING:
                self._create_topic()
            else:
                self._patience = min(2 * self._patience, MOST_PATIENT)

    def _create_topic(self) -> None:
        try:
            self._topic.create(self._patience * REQUEST_S)
        except KafkaException as error:
            self._report(kafka_error(error).str())

    def _report(self, problem: str) -> None:
        problem = f"the coordination topic {self._topic.name} cannot be used: {problem}"
        if problem != self.problem:
            log.warning("Group %s: %s; trying again", self._group, problem)
        self.problem = problem
