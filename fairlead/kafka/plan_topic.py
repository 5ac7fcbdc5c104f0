"""The plan topic: a group's plan is in the newest record whose key is the group's id.

Belongs here: opening the topic for writing, and checking whether consumers can read a record.
Belongs elsewhere: creating and reading the topic (`compacted_topic`), the content of a plan
(`fairlead.wire.document`), and following plans in a consumer (`fairlead.followers`).
"""

import time
from typing import Any, Final

from confluent_kafka import IsolationLevel, TopicPartition
from confluent_kafka.admin import OffsetSpec

from fairlead.errors import ConfigurationError, KafkaUnavailableError
from fairlead.kafka.compacted_topic import POLL_S, CompactedTopic
from fairlead.kafka.plan_channel import PlanChannel
from fairlead.settings import KafkaSettings

#: Longest wait in seconds for a transaction's marker, which is written shortly after the commit.
_COMMITTED_S: Final = 5.0


class PlanTopic(CompactedTopic):
    """Writes and reads plans. Use it as a context manager, in one thread.

    Parameters
    ----------
    settings
        How to reach the cluster, and the topic's name.
    """

    def __init__(self, settings: KafkaSettings) -> None:
        super().__init__(settings, settings.plan_topic, partitions=settings.plan_topic_partitions)

    def open(self, partition: int) -> PlanChannel:
        """Return the only writer of a partition; raises the errors of `PlanChannel`."""
        return PlanChannel(self._settings, partition)

    def held_up(self, partition: int, offset: int) -> int | None:
        """Return the last stable offset if consumers cannot read a record yet; None if they can.

        If another producer leaves a transaction open, consumers cannot read later records until
        this transaction ends, after at most the broker's `transaction.max.timeout.ms`.

        Parameters
        ----------
        offset
            Offset of a record that was just committed.
        """
        place = TopicPartition(self.name, partition)
        committed = IsolationLevel.READ_COMMITTED
        deadline = time.monotonic() + _COMMITTED_S
        while True:
            try:
                end: Any = self._ask(
                    lambda admin: admin.list_offsets(
                        {place: OffsetSpec.latest()}, isolation_level=committed
                    )[place]
                )
            except (ConfigurationError, KafkaUnavailableError):
                return None  # the record is written; later requests report this error
            if end.offset > offset:
                return None
            if time.monotonic() >= deadline:
                return int(end.offset) if end.offset >= 0 else None  # -1: no leader
            time.sleep(POLL_S)
