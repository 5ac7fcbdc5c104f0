"""Add reports of work to all commits of confluent-kafka.

Belongs here: storing offsets with reports for librdkafka's commits. Does not: measuring
(`followers.core.meter`).

A thread of librdkafka commits the stored offsets. By default librdkafka stores an offset when it
returns a message, without metadata. So this module sets `enable.auto.offset.store=false` and stores
offsets with reports instead. Storing takes 20 us or more. So offsets of
single messages are stored ten times a second at most, and before every call that uses stored
offsets. Offsets of a batch are stored at once: the application may work on it for minutes.
"""

import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import groupby
from typing import Any, Final

from confluent_kafka import Consumer, KafkaException, Message, TopicPartition

from fairlead.followers.core.meter import Meter, ReportedWork, Run, has_metadata
from fairlead.followers.core.progress import Pair
from fairlead.wire.work_report import PREFIX

_AUTO_STORE: Final = "enable.auto.offset.store"
_AUTO_COMMIT: Final = "enable.auto.commit"
_MAX_POLL: Final = "max.poll.interval.ms"
_ON_COMMIT: Final = "on_commit"
#: Seconds between two stores for single messages.
_STORE_EVERY_S: Final = 0.1
#: Messages in a batch whose offsets are stored at once: storing then takes about 1 us per message.
_BATCH: Final = 16
_ARGUMENTS: Final = ("message", "offsets", "asynchronous")


class Reporting:
    """The reports of one consumer.

    Parameters
    ----------
    settings
        The consumer's configuration.
    report
        Whether to report.
    """

    def __init__(self, settings: Mapping[str, Any], *, report: bool) -> None:
        self.meter = Meter(float(settings.get(_MAX_POLL, 300_000)) / 1e3)
        #: Partitions that the application has paused.
        self.paused: set[Pair] = set()
        #: Whether the consumer reports its work.
        self.reports = report
        #: Whether to store offsets here, because librdkafka would store them by default.
        self._stores = report and _is_on(settings.get(_AUTO_STORE, True))
        #: Whether librdkafka commits automatically.
        self._commits = _is_on(settings.get(_AUTO_COMMIT, True))
        self.settings = dict(settings)
        if self._stores:
            self.settings[_AUTO_STORE] = False
        if report and callable(callback := settings.get(_ON_COMMIT)):
            self.settings[_ON_COMMIT] = lambda error, offsets: callback(
                error, without_reports(offsets)
            )
        #: Partition to its last returned message, if the offset is not stored yet.
        self._handed_out: dict[Pair, Message] = {}
        self._next_store_at = float("-inf")

    def took(self, consumer: Consumer, message: Message) -> None:
        """Note that the client returns a message."""
        pair: Any = message.topic(), message.partition()
        offset: Any = message.offset()
        self.meter.took_one(pair, offset)
        if self._stores:
            self._handed_out[pair] = message
            self._store_if_due(consumer)

    def took_list(self, consumer: Consumer, messages: list[Message]) -> list[Message]:
        """Note that the client returns messages; return a timed list of them."""
        runs: list[Run] = []
        taken = 0
        for pair, count in _pairs(messages):
            taken += count
            if pair is None:
                runs.append((None, count))
            else:
                runs.append((self.meter.progress_of(pair), count))
                if self._stores:
                    self._handed_out[pair] = messages[taken - 1]
        timed = self.meter.took_list(messages, runs, _offset)
        self._store_if_due(consumer, len(messages))
        return timed

    def _store_if_due(self, consumer: Consumer, messages: int = 1) -> None:
        if self._commits and (messages >= _BATCH or self.meter.since >= self._next_store_at):
            self.store(consumer)

    def store(self, consumer: Consumer) -> None:
        """Store the offsets of all messages returned since the last call."""
        if not self._stores or not self._handed_out:
            return
        handed_out, self._handed_out = self._handed_out, {}
        offsets = [_behind(message) for message in handed_out.values()]
        # The consumer may have lost the partition, or may be closing.
        with suppress(KafkaException, RuntimeError):
            Consumer.store_offsets(consumer, offsets=self._reported(consumer, offsets))
        self._next_store_at = time.perf_counter() + _STORE_EVERY_S

    def assignment_changed(self) -> None:
        """Forget offsets and paused partitions of the assignment before."""
        self._handed_out.clear()
        self.paused.clear()

    def with_reports(
        self, consumer: Consumer, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return arguments of `commit` or `store_offsets` with reports added."""
        given = {**dict(zip(_ARGUMENTS, args, strict=False)), **kwargs}
        if not self.reports:
            return given
        message: Message | None = given.get("message")
        offsets: Iterable[TopicPartition] | None = given.get("offsets")
        if message is not None and offsets is None and message.error() is None:
            del given["message"]
            offsets = [_behind(message)]
        if offsets is not None:
            given["offsets"] = self._reported(consumer, offsets)
        return given

    def reported_work(self) -> ReportedWork | None:
        """Return a summary of the reports; None: reports are off."""
        return self.meter.reported_work(len(self.paused)) if self.reports else None

    def _reported(
        self, consumer: Consumer, offsets: Iterable[TopicPartition]
    ) -> list[TopicPartition]:
        member_id = consumer.memberid() or ""

        def report(its: TopicPartition) -> TopicPartition:
            if its.offset < 0 or has_metadata(its.metadata):
                return its
            work = self.meter.report((its.topic, its.partition), its.offset, len(self.paused))
            return _with_metadata(its, work.text(member_id, self.meter.token))

        return [report(its) for its in offsets]


def _is_on(setting: Any) -> bool:
    """Return whether a setting of librdkafka, possibly a string, is true."""
    return str(setting).lower() in {"true", "t", "1"}


def without_reports(offsets: list[TopicPartition]) -> list[TopicPartition]:
    """Return offsets without the metadata that was added here."""
    return [
        _with_metadata(its, None)
        if its.error is None and str(its.metadata).startswith(PREFIX)
        else its
        for its in offsets
    ]


def _pairs(messages: list[Message]) -> list[tuple[Pair | None, int]]:
    """Return the partitions of consecutive messages, with their counts; None: errors."""
    found: Iterable[Any]
    if any(map(Message.error, messages)):
        found = [None if m.error() else (m.topic(), m.partition()) for m in messages]
    else:
        found = zip(map(Message.topic, messages), map(Message.partition, messages), strict=True)
    return [(pair, len(list(group))) for pair, group in groupby(found)]


#: Returns the offset of a message without an error.
_offset: Any = Message.offset


def _behind(message: Message) -> TopicPartition:
    """Return the offset to commit after a message."""
    topic: Any = message.topic()
    partition: Any = message.partition()
    offset = (message.offset() or 0) + 1
    return _with_metadata(TopicPartition(topic, partition, offset), None, message.leader_epoch())


def _with_metadata(
    its: TopicPartition, metadata: str | None, epoch: int | None = None
) -> TopicPartition:
    epoch = its.leader_epoch if epoch is None else epoch
    given: dict[str, Any] = {"metadata": metadata, "leader_epoch": epoch}
    given = {name: value for name, value in given.items() if value is not None}
    return TopicPartition(its.topic, its.partition, its.offset, **given)
