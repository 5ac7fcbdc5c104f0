"""Report the application's processing times in the metadata of all commits of confluent-kafka.

Belongs here: storing offsets with reports, which librdkafka then commits. Belongs elsewhere:
measuring processing times (`followers.core.meter`).

A thread of librdkafka commits the stored offsets. By default librdkafka stores an offset without
metadata when it returns a message. So this module sets `enable.auto.offset.store=false` and stores
offsets with reports instead. Storing takes 20 us or more, so offsets of single messages are stored
at most ten times a second, and before every call that uses stored offsets. Offsets of a batch are
stored immediately, because the application may process the batch for minutes.
"""

import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import groupby
from typing import Any, Final

from confluent_kafka import Consumer, KafkaException, Message, TopicPartition

from fairlead.followers.core.meter import Meter, ReportedWork, Run, has_metadata
from fairlead.followers.core.progress import Progress
from fairlead.wire.partitions import Pair
from fairlead.wire.work_report import PREFIX

_AUTO_STORE: Final = "enable.auto.offset.store"
_AUTO_COMMIT: Final = "enable.auto.commit"
_MAX_POLL: Final = "max.poll.interval.ms"
_ON_COMMIT: Final = "on_commit"
#: Seconds. When the client returns messages, offsets are stored at most once in this time.
_STORE_EVERY_S: Final = 0.1
#: Offsets of a batch with at least this many messages are stored immediately. That costs about 1 us
#: per message.
_BATCH: Final = 16
_ARGUMENTS: Final = ("message", "offsets", "asynchronous")


class Reporting:
    """Adds reports of processing times to the commits of one consumer.

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
        #: Whether the consumer reports processing times.
        self.reports = report
        #: Whether this class stores offsets. False if the application does so, or reports are off.
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
        #: Maps each partition to its last returned message, until that message's offset is stored.
        self._handed_out: dict[Progress, Message] = {}
        self._next_store_at = float("-inf")

    def took(self, consumer: Consumer, message: Any) -> None:
        """Start timing a message that the client returns, and store its offset if due."""
        progress = self.meter.took_one(message.topic(), message.partition(), message.offset())
        if self._stores:
            self._handed_out[progress] = message
            if self._commits and self.meter.since >= self._next_store_at:
                self.store(consumer)
                self.meter.begin()

    def took_list(self, consumer: Consumer, messages: list[Message]) -> list[Message]:
        """Start timing messages that the client returns; return the messages as a `TimedList`."""
        runs: list[Run] = []
        records = 0
        for key, run in groupby(_partitions(messages)):
            count = len(list(run))
            records += count
            progress = None
            if key is not None:
                last = messages[records - 1]
                progress = self.meter.progress_of(_pair(last))
                if self._stores:
                    self._handed_out[progress] = last
            runs.append((progress, count))
        timed = self.meter.took_list(messages, runs, _offset)
        if self._commits and (records >= _BATCH or self.meter.since >= self._next_store_at):
            self.store(consumer)
            self.meter.begin()
        return timed

    def store(self, consumer: Consumer) -> None:
        """Store the offsets of all messages returned since the last call."""
        if not self._stores or not self._handed_out:
            return
        handed_out, self._handed_out = self._handed_out, {}
        offsets = [_behind(message) for message in handed_out.values()]
        # Storing fails if the consumer has lost the partition or is closing.
        with suppress(KafkaException, RuntimeError):
            Consumer.store_offsets(consumer, offsets=self._reported(consumer, offsets))
        self._next_store_at = time.perf_counter() + _STORE_EVERY_S

    def assignment_changed(self) -> None:
        """Forget offsets and paused partitions of the previous assignment."""
        self._handed_out.clear()
        self.paused.clear()

    def with_reports(
        self, consumer: Consumer, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return the arguments of `commit` or `store_offsets`, with reports added to offsets."""
        arguments = {**dict(zip(_ARGUMENTS, args, strict=False)), **kwargs}
        if not self.reports:
            return arguments
        message: Message | None = arguments.get("message")
        offsets: Iterable[TopicPartition] | None = arguments.get("offsets")
        if message is not None and offsets is None and message.error() is None:
            del arguments["message"]
            offsets = [_behind(message)]
        if offsets is not None:
            arguments["offsets"] = self._reported(consumer, offsets)
        return arguments

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
    """Return offsets without the metadata that `Reporting` added."""
    return [
        _with_metadata(its, None)
        if its.error is None and str(its.metadata).startswith(PREFIX)
        else its
        for its in offsets
    ]


def _partitions(messages: list[Message]) -> Iterable[Any]:
    """Return a key for each message: equal keys for messages of one partition, None for errors.

    If all messages are of one topic, the keys are partition numbers, because comparing numbers is
    faster.
    """
    if any(map(Message.error, messages)):
        return [None if message.error() else _pair(message) for message in messages]
    partitions = map(Message.partition, messages)
    if len(set(map(Message.topic, messages))) == 1:
        return partitions
    return zip(map(Message.topic, messages), partitions, strict=True)


def _pair(message: Any) -> Pair:
    return message.topic(), message.partition()


#: Returns the offset of a message that is not an error.
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
    arguments: dict[str, Any] = {"metadata": metadata, "leader_epoch": epoch}
    arguments = {name: value for name, value in arguments.items() if value is not None}
    return TopicPartition(its.topic, its.partition, its.offset, **arguments)
