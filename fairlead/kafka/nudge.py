"""The nudge: a member that joins for a moment, so that the broker computes a group's target anew.

Belongs here: joining and leaving without harm. Does not: which groups need it, and whether it has
worked (`fairlead.workflows.following`).

Nothing in Kafka has a broker assign because a plan has arrived: a group's target is computed after
a join, a leave or another subscription. The nudge subscribes to the plan topic alone: the broker's
own assignors, where one of them is at work, give it partitions of that, and touch nobody else's. It
names no assignor, which would be a vote; it is not static; it commits nothing. Killed, it is a
ghost until its session ends, which has the target computed once more.
"""

from types import TracebackType
from typing import Final, Self

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from fairlead.kafka.consumer_protocol import NUDGE, NUDGE_RACK
from fairlead.kafka.requests import kafka_error
from fairlead.settings import KafkaSettings

#: Settings of consumers, were they among the planner's own, that a nudge must not have.
_NOT_ITS_OWN: Final = frozenset(
    {
        "group.instance.id",
        "group.protocol.type",
        "group.remote.assignor",
        "heartbeat.interval.ms",
        "partition.assignment.strategy",
        "session.timeout.ms",
    }
)
#: What it is refused for good.
_LASTING: Final = frozenset(
    {
        KafkaError.GROUP_AUTHORIZATION_FAILED,
        KafkaError.GROUP_MAX_SIZE_REACHED,
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.UNSUPPORTED_VERSION,
    }
)


class Nudge:
    """One nudge of one group, which must be of the consumer protocol and have such a member.

    A context manager; leaves the group on exit.

    Parameters
    ----------
    settings
        How to reach the cluster, and the plan topic.
    group, version
        Which group, and the plan that the broker is to know: an assignor that has not read that
        version can tell.
    """

    def __init__(self, settings: KafkaSettings, group: str, version: int) -> None:
        own = {
            name: value for name, value in settings.librdkafka().items() if name not in _NOT_ITS_OWN
        }
        self._errors: list[KafkaError] = []
        self._topic = settings.plan_topic
        self._consumer = Consumer(
            {
                **own,
                "group.id": group,
                "group.protocol": "consumer",
                "client.id": NUDGE,
                "client.rack": f"{NUDGE_RACK}{group}:{version}",
                "enable.auto.commit": "false",
                "allow.auto.create.topics": "false",
                "auto.offset.reset": "latest",
                "log_level": "2",  # what it is refused, it says itself
                "error_cb": self._errors.append,
            }
        )

    def __enter__(self) -> Self:
        self.join()
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.leave()

    def join(self) -> None:
        """Join the group."""
        self._consumer.subscribe([self._topic], on_assign=_read_nothing)

    def leave(self) -> None:
        """Leave the group."""
        self._consumer.close()

    def refused(self) -> str:
        """Let it take part for a moment; returns why it cannot, or nothing."""
        try:
            message = self._consumer.poll(0)
        except KafkaException as raised:
            return kafka_error(raised).str()
        if message is not None and (error := message.error()) is not None:
            self._errors.append(error)
        lasting = [one for one in self._errors if one.fatal() or one.code() in _LASTING]
        return lasting[0].str() if lasting else ""


def _read_nothing(consumer: Consumer, partitions: list[TopicPartition]) -> None:
    """Take what it is given, or the broker would wait, and fetch nothing of it."""
    consumer.incremental_assign(partitions)
    consumer.pause(partitions)
