"""Consumers of the three Python clients with one interface; each consumer polls on its own thread.

Belongs here: differences between the clients. Belongs elsewhere: measurements (`rebalance`,
`drain`).
"""

import asyncio
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from typing import Any, Final, Literal, Self

from aiokafka import AIOKafkaConsumer
from confluent_kafka import Consumer, TopicPartition
from kafka import KafkaConsumer

from fairlead.followers import aiokafka, kafka_python
from fairlead.followers.confluent import PlanConsumer
from fairlead.followers.core.follower import FollowOptions

Client = Literal["kafka-python", "aiokafka", "confluent-kafka"]
CLIENTS: Final[tuple[Client, ...]] = ("kafka-python", "aiokafka", "confluent-kafka")
WAIT_S: Final = 0.1

#: Handles the records that a poll returned; the argument is their number.
Work = Callable[[int], None]


class Member:
    """One consumer on a thread. As a context manager, it joins on entry and leaves on exit.

    Parameters
    ----------
    work
        Called after each poll with the number of returned records, before the next poll.
    """

    def __init__(self, work: Work = lambda _: None) -> None:
        self.joined_at = 0.0
        self._work = work
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Self:
        self._join()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._stopping.set()
        self._thread.join()

    @property
    def owned(self) -> frozenset[tuple[str, int]]:
        """Return the assigned partitions."""
        raise NotImplementedError

    def _join(self) -> None:
        """Let the consumer join its group, and set `joined_at` from `time.perf_counter`."""
        self.joined_at = time.perf_counter()
        self._thread.start()

    def _run(self) -> None:
        raise NotImplementedError


class KafkaPythonMember(Member):
    """A kafka-python consumer."""

    def __init__(
        self, topics: Sequence[str], *, follow: bool, work: Work = lambda _: None, **config: Any
    ) -> None:
        super().__init__(work)
        kind = kafka_python.PlanConsumer if follow else KafkaConsumer
        self._consumer = kind(**config)
        self._consumer.subscribe(topics)

    @property
    def owned(self) -> frozenset[tuple[str, int]]:
        """Return the assigned partitions."""
        return frozenset(
            (partition.topic, partition.partition) for partition in self._consumer.assignment()
        )

    def _run(self) -> None:
        while not self._stopping.is_set():
            fetched = self._consumer.poll(timeout_ms=int(WAIT_S * 1000))
            self._work(sum(map(len, fetched.values())))
        self._consumer.close()


class AiokafkaMember(Member):
    """An aiokafka consumer with its own event loop."""

    def __init__(
        self, topics: Sequence[str], *, follow: bool, work: Work = lambda _: None, **config: Any
    ) -> None:
        super().__init__(work)
        self._topics, self._config = topics, config
        self._kind = aiokafka.PlanConsumer if follow else AIOKafkaConsumer
        self._ready: Future[AIOKafkaConsumer] = Future()
        self._joining = threading.Event()
        self._thread.start()
        self._consumer = self._ready.result(60)

    def _join(self) -> None:
        self.joined_at = time.perf_counter()
        self._joining.set()

    @property
    def owned(self) -> frozenset[tuple[str, int]]:
        """Return the assigned partitions."""
        return frozenset(
            (partition.topic, partition.partition) for partition in self._consumer.assignment()
        )

    def _run(self) -> None:
        asyncio.run(self._consume())

    async def _consume(self) -> None:
        consumer = self._kind(*self._topics, **self._config)
        if assignor := getattr(consumer, "plan_assignor", None):
            await assignor.read_ahead()
        self._ready.set_result(consumer)
        await asyncio.to_thread(self._joining.wait)
        await consumer.start()
        while not self._stopping.is_set():
            fetched = await consumer.getmany(timeout_ms=int(WAIT_S * 1000))
            self._work(sum(map(len, fetched.values())))
        await consumer.stop()


class ConfluentMember(Member):
    """A confluent-kafka consumer."""

    def __init__(
        self, topics: Sequence[str], *, follow: bool, work: Work = lambda _: None, **config: Any
    ) -> None:
        super().__init__(work)
        self._owned: frozenset[tuple[str, int]] = frozenset()
        plan_topic = config.pop("plan_topic", "")
        options = FollowOptions(plan_topic=plan_topic, rejoin_jitter_s=None)
        settings = {name.replace("_", "."): value for name, value in config.items()}
        self._consumer = PlanConsumer(settings, options=options) if follow else Consumer(settings)
        self._topics = list(topics)
        self._consumer.list_topics(timeout=60)  # connect first, so that only the join is timed

    def _join(self) -> None:
        # Before this call, a plan follower reads the coordination topic, so only the join itself is
        # timed, as with a plain consumer.
        self._consumer.subscribe(self._topics, on_assign=self._assigned, on_revoke=self._revoked)
        super()._join()

    @property
    def owned(self) -> frozenset[tuple[str, int]]:
        """Return the assigned partitions."""
        return self._owned

    def _run(self) -> None:
        while not self._stopping.is_set():
            fetched = self._consumer.consume(500, WAIT_S)
            self._work(sum(message.error() is None for message in fetched))
        self._consumer.close()

    def _assigned(self, _: Consumer, share: Iterable[TopicPartition]) -> None:
        self._owned = frozenset((partition.topic, partition.partition) for partition in share)

    def _revoked(self, *_: object) -> None:
        self._owned = frozenset()


MEMBERS: Final[dict[Client, type[Any]]] = {
    "kafka-python": KafkaPythonMember,
    "aiokafka": AiokafkaMember,
    "confluent-kafka": ConfluentMember,
}
