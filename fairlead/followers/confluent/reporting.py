"""Write reports of work into the offsets that a confluent-kafka consumer commits.

Belongs here: storing offsets with reports for librdkafka's commits. Does not: what is measured
(`followers.core.meter`).

librdkafka commits the offsets that are stored, on a thread of its own. With
`enable.auto.offset.store=false` the consumer stores them here, with metadata, where librdkafka
would have stored them without: as it hands out messages. Storing takes 20 us and more. So it is
done once in a while, and always before a call that uses stored offsets.
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
#: Storing pauses for so many times as long as it took: it takes 1 % of the time at most.
_STORE_PAUSE: Final = 100
_ARGUMENTS: Final = ("message", "offsets", "asynchronous")


class Reporting:
    """What one consumer reports.

    Parameters
    ----------
    settings
        The consumer's.
    report
        Whether to report.
    """

    def __init__(self, settings: Mapping[str, Any], *, report: bool) -> None:
        self.meter = Meter(float(settings.get(_MAX_POLL, 300_000)) / 1e3)
        #: Partitions that the application has paused.
        self.paused: set[Pair] = set()
        self._report = report
        #: Whether librdkafka would store offsets: a setting may be a text.
        self._stores = report and _is_on(settings.get(_AUTO_STORE, True))
        #: Whether librdkafka commits what is stored, at any time.
        self._commits = _is_on(settings.get(_AUTO_COMMIT, True))
        self.settings = dict(settings)
        if self._stores:
            self.settings[_AUTO_STORE] = False
        if report and callable(callback := settings.get(_ON_COMMIT)):
            self.settings[_ON_COMMIT] = lambda error, offsets: callback(
                error, without_reports(offsets)
            )
        #: The last message handed out of each partition that has one to store.
        self._handed_out: dict[Pair, Message] = {}
        self._next_store_at = float("-inf")

    def took(self, consumer: Consumer, message: Message) -> None:
        """Note that the application takes a message."""
        pair: Any = message.topic(), message.partition()
        offset: Any = message.offset()
        self.meter.took_one(pair, offset)
        if self._stores:
            self._handed_out[pair] = message
            self._store_if_due(consumer)

    def took_list(self, consumer: Consumer, messages: list[Message]) -> list[Message]:
        """Note that the application takes messages; return them as a list that is timed."""
        runs: list[Run] = []
        taken = 0
        for pair, count in _pairs(messages):
            taken += count
            if pair is None:
                runs.append((None, count))
            else:
                runs.append((self.meter.progress_of(pair), count))
                self._handed_out[pair] = messages[taken - 1]
        timed = self.meter.took_list(messages, runs, _offset)
        self._store_if_due(consumer)
        return timed

    def _store_if_due(self, consumer: Consumer) -> None:
        if self._commits and self.meter.since >= self._next_store_at:
            self.store(consumer)

    def store(self, consumer: Consumer) -> None:
        """Store the offsets of messages that were handed out since the last time."""
        if not self._stores or not self._handed_out:
            return
        began = time.perf_counter()
        handed_out, self._handed_out = self._handed_out, {}
        offsets = [_behind(message) for message in handed_out.values()]
        # The consumer may have no such partition any more, or is being closed.
        with suppress(KafkaException, RuntimeError):
            Consumer.store_offsets(consumer, offsets=self._reported(consumer, offsets))
        ended = time.perf_counter()
        self._next_store_at = ended + _STORE_PAUSE * (ended - began)

    def assignment_changed(self) -> None:
        """Note that the consumer has other partitions: none of them is paused."""
        self._handed_out.clear()
        self.paused.clear()

    def with_reports(
        self, consumer: Consumer, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return the arguments of `commit` or `store_offsets`, with reports added."""
        given = {**dict(zip(_ARGUMENTS, args, strict=False)), **kwargs}
        if not self._report:
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
        """Return what is reported, for people; None: nothing."""
        return self.meter.reported_work(len(self.paused)) if self._report else None

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
    """Whether a setting of librdkafka, which may be a text, is true."""
    return str(setting).lower() in {"true", "t", "1"}


def without_reports(offsets: list[TopicPartition]) -> list[TopicPartition]:
    """Return committed offsets as the application gave them."""
    return [
        _with_metadata(its, None)
        if its.error is None and str(its.metadata).startswith(PREFIX)
        else its
        for its in offsets
    ]


def _pairs(messages: list[Message]) -> list[tuple[Pair | None, int]]:
    """Return how many consecutive messages are of which partition; None: of an error."""
    found: Iterable[Any]
    if any(map(Message.error, messages)):
        found = [None if m.error() else (m.topic(), m.partition()) for m in messages]
    else:
        found = zip(map(Message.topic, messages), map(Message.partition, messages), strict=True)
    return [(pair, len(list(group))) for pair, group in groupby(found)]


#: The offset of a message that has one.
_offset: Any = Message.offset


def _behind(message: Message) -> TopicPartition:
    """Return the offset that is committed once a message is done."""
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
