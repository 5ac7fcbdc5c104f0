"""Read the plan topic with confluent-kafka.

Belongs here: finding the one partition that holds a group's key, and reading on where the tail that
it is read through gives way to another. Does not: the tail itself (`tail`), nor what a record means
(`plan_cache`).
"""

import logging
from typing import Final

from confluent_kafka import KafkaError, KafkaException, Message, TopicPartition
from confluent_kafka.admin import OffsetSpec

from fairlead.followers.confluent.tail import Place, Tails
from fairlead.followers.core.plan_cache import PlanRecord
from fairlead.wire.partitions import home_of
from fairlead.wire.record import Origin

log = logging.getLogger(__name__)

_TIMEOUT_S: Final = 5.0


class ConfluentSource:
    """The plan topic's partition that holds a group's key, read from its beginning.

    Parameters
    ----------
    tails
        What it is read through.
    partition
        Where it begins.
    origin
        Where its records stand.
    """

    def __init__(self, tails: Tails, partition: TopicPartition, origin: Origin) -> None:
        self._tails = tails
        self._place: Place = partition.topic, partition.partition
        self._next = partition.offset
        self._ended = self._spoilt = False
        self.origin = origin
        self._join()

    @classmethod
    def open(cls, tails: Tails, topic: str) -> "ConfluentSource | None":
        """Connect; None where the topic does not exist, or may not be read.

        Parameters
        ----------
        tails
            What it is to be read through.
        topic
            The plan topic.
        """
        cluster_id, found = tails.cluster.metadata(topic, _TIMEOUT_S)
        if found.error is not None:
            return None
        number = home_of(tails.group, len(found.partitions))
        # Asked here: the consumer's own request would wait behind its fetches.
        begin = tails.cluster.offset(topic, number, OffsetSpec.earliest(), _TIMEOUT_S)
        origin = Origin(topic, cluster_id, _topic_id(tails, topic))
        return cls(tails, TopicPartition(topic, number, begin), origin)

    def __str__(self) -> str:
        topic, number = self._place
        return f"{topic}, partition {number}"

    def read(self, timeout_s: float) -> list[PlanRecord]:
        """Wait at most `timeout_s` for the next record, and take what else is there.

        Raises
        ------
        KafkaException
            The topic is gone, or may not be read any more.
        """
        passed = self._tails.newest is not self._newest
        messages = self._tail.read(self._place, 0.0 if passed else timeout_s)
        records = [record for record in map(self._record, messages) if record is not None]
        if passed:
            self._tail.remove(self._place)
            self._join()
        return records

    def moved(self) -> bool:
        """Whether the group's key lands in another partition by now, or in another topic's.

        librdkafka goes on from the offset that it had in the topic before, and says nothing.
        """
        topic, number = self._place
        _, found = self._tails.cluster.metadata(topic, _TIMEOUT_S)
        if found.error is not None:
            return False
        log_now = _topic_id(self._tails, topic)
        anew = bool(log_now) and log_now != self.origin.log
        self._spoilt = self._spoilt or anew
        return anew or home_of(self._tails.group, len(found.partitions)) != number

    def at_end(self) -> bool:
        """Whether everything that was there when this was opened has been read."""
        return self._ended

    def close(self) -> None:
        """Read no more."""
        self._tail.remove(self._place, spoilt=self._spoilt)

    def _join(self) -> None:
        self._tail = self._tails.join(TopicPartition(*self._place, self._next))
        self._newest = self._tails.newest  # if it is another one by now, one move comes too late

    def _record(self, message: Message) -> PlanRecord | None:
        error = message.error()
        if error is None:
            self._next = (message.offset() or 0) + 1
            return PlanRecord(
                self._next - 1,
                message.key(),
                message.value(),
                tuple(message.headers() or ()),
            )
        if error.code() != KafkaError._PARTITION_EOF:  # noqa: SLF001 - librdkafka's name
            # What concerns the topic may be remembered by whoever reads it.
            self._spoilt = message.topic() is not None
            raise KafkaException(error)
        self._ended = True
        return None


def _topic_id(tails: Tails, topic: str) -> str:
    """Ask for the id that the cluster gave a topic; "": it does not tell."""
    try:
        return tails.cluster.topic_id(topic, _TIMEOUT_S)
    except KafkaException as error:
        log.debug("The id of topic %s is not known: %s", topic, error)
        return ""
