"""Write reports of work into the offsets that a confluent-kafka consumer commits.

Belongs here: storing offsets with reports for librdkafka's commits. Does not: what is measured
(`followers.core.meter`).

librdkafka commits the offsets that are stored, on a thread of its own. With
`enable.auto.offset.store=false` the consumer stores them here, with metadata, where librdkafka
would have stored them without: as it hands out messages, and before it commits or gives partitions
up.
"""

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from confluent_kafka import Consumer, KafkaException, Message, TopicPartition

from fairlead.followers.core.meter import Meter, has_metadata

_AUTO_STORE: Final = "enable.auto.offset.store"
_MAX_POLL: Final = "max.poll.interval.ms"
#: Storing takes 20 to 50 us: done so often at most, in seconds, or after so many messages.
_STORE_EVERY_S: Final = 0.1
_STORE_AFTER: Final = 100
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
        self.paused: set[tuple[str, int]] = set()
        self._report = report
        #: Whether librdkafka would store offsets: a setting may be a text.
        self._stores = report and str(settings.get(_AUTO_STORE, True)).lower() in ("true", "1")
        self.settings = {**settings, **({_AUTO_STORE: False} if self._stores else {})}
        self._stored_at, self._taken = float("-inf"), 0

    def store(self, consumer: Consumer, *, taken: int = 1, now: bool = False) -> None:
        """Store the positions of the consumer's partitions, if that is due.

        Parameters
        ----------
        taken
            Messages that it has just handed out.
        now
            Whether to store in any case, because the offsets are needed.
        """
        if not self._stores:
            return
        self._taken += taken
        at = time.monotonic()
        if not now and at - self._stored_at < _STORE_EVERY_S and self._taken < _STORE_AFTER:
            return
        self._stored_at, self._taken = at, 0
        try:
            positions = consumer.position(consumer.assignment())
        except (KafkaException, RuntimeError):  # the consumer is being closed
            return
        moved = [its for its in positions if its.offset >= 0]
        if moved:
            Consumer.store_offsets(consumer, offsets=self._reported(consumer, moved))

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
            topic, partition, offset = message.topic(), message.partition(), message.offset() or 0
            offsets = [_named(topic, partition, offset + 1, "", message.leader_epoch())]
        if offsets is not None:
            given["offsets"] = self._reported(consumer, offsets)
        return given

    def _reported(
        self, consumer: Consumer, offsets: Iterable[TopicPartition]
    ) -> list[TopicPartition]:
        member_id = consumer.memberid() or ""
        reported = []
        for its in offsets:
            if its.offset >= 0 and not has_metadata(its.metadata):
                report = self.meter.report((its.topic, its.partition), its.offset, len(self.paused))
                text = report.text(member_id, self.meter.token)
                reported.append(
                    _named(its.topic, its.partition, its.offset, text, its.leader_epoch)
                )
            else:
                reported.append(its)
        return reported


def _named(topic: Any, partition: Any, offset: int, metadata: str, epoch: int | None) -> Any:
    given = () if epoch is None else (epoch,)
    return TopicPartition(topic, partition, offset, metadata, *given)
