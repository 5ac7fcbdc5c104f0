"""Models of topics with faults such as refused writes, truncated logs and deleted topics."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Self

from confluent_kafka import KafkaError, KafkaException

from fairlead.followers.confluent.agreement_log import Entry, Sent
from fairlead.followers.core.plan_cache import PlanRecord
from fairlead.wire.agreement import Record, decode
from fairlead.wire.partitions import partition_for_key as real_home_of
from fairlead.wire.record import Origin

GROUP = "group"
partition_for_key = cache(real_home_of)
At = Callable[[float, Callable[[], None]], None]


@dataclass
class Partition:
    """One partition: its leader's log. A new leader may lack the former leader's last records."""

    records: list[tuple[int, Any]] = field(default_factory=list)  # leader epoch and record
    epoch: int = 0
    cuts: list[int] = field(default_factory=list)

    def lead(self, *, lose: int = 0) -> None:
        """Elect another leader, whose log lacks the last `lose` records."""
        self.epoch += 1
        if lose and self.records:
            del self.records[-lose:]
            self.cuts.append(len(self.records))


class Topic:
    """A topic with a fixed name that may be deleted and created again.

    Parameters
    ----------
    now, at
        `now()` returns the time; `at(delay_s, function)` calls a function after a delay.
    rng
        Draws delays.
    count
        Number of partitions.
    """

    def __init__(
        self, now: Callable[[], float], at: At, rng: random.Random, count: int = 2
    ) -> None:
        self.now, self.at, self.rng = now, at, rng
        self.life = 0
        self.partitions: list[Partition] | None = [Partition() for _ in range(count)]
        #: Outcome of writes: "ok", "refused", "lost", or "doubtful" (written, but timed out).
        self.writes = "ok"
        self.reachable = True
        #: Whether brokers report that they assign the group's partitions.
        self.broker_assigns = False
        self.delay_s = 0.005

    @property
    def identity(self) -> str:
        """The topic's id."""
        return f"life-{self.life}"

    def delete(self) -> None:
        """Delete the topic."""
        self.partitions = None

    def create(self, count: int = 2) -> None:
        """Create the topic unless it exists."""
        if self.partitions is None:
            self.life += 1
            self.partitions = [Partition() for _ in range(count)]

    def grow(self) -> None:
        """Add partitions until the group's key maps to another partition."""
        if self.partitions is not None:
            old = partition_for_key(GROUP, len(self.partitions))
            while partition_for_key(GROUP, len(self.partitions)) == old:
                self.partitions.append(Partition())

    def home(self) -> int:
        """Return the number of the partition that the group's key maps to."""
        assert self.partitions is not None
        return partition_for_key(GROUP, len(self.partitions))

    def answer(self) -> None:
        """Raise the broker's error if the topic is unreachable or deleted."""
        if not self.reachable:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
        if self.partitions is None:
            raise KafkaException(KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART))

    def write(self, number: int, record: Any, sent: Sent) -> None:
        """Write a record after a delay, or fail as set in `writes`; put the outcome in `sent`."""
        fate = self.writes
        if fate == "refused":
            sent.refused = "not enough replicas"
            return
        if fate == "lost" or not self.reachable:
            self.at(2.0, lambda: setattr(sent, "doubtful", "timed out"))
            return

        def land() -> None:
            if self.partitions is None or number >= len(self.partitions):
                sent.refused = "unknown topic"
                return
            home = self.partitions[number]
            home.records.append((home.epoch, record))
            if fate == "doubtful":
                self.at(1.0, lambda: setattr(sent, "doubtful", "timed out"))

        self.at(self.rng.expovariate(1 / self.delay_s), land)


class Tail:
    """A reader's position in a partition."""

    def __init__(self, topic: Topic, position: int | None = None) -> None:
        self.topic = topic
        self.life, self.number = topic.life, topic.home()
        assert topic.partitions is not None
        self.partition = topic.partitions[self.number]
        self.position = len(self.partition.records) if position is None else position
        self.cuts = len(self.partition.cuts)
        # Until this time, clients do not notice that the topic was deleted.
        self.blind_until: float | None = None

    def problem(self) -> str | None:
        """Return the reason why no more records can be read; None: reading may continue."""
        topic = self.topic
        if topic.partitions is None or topic.life != self.life:
            if self.blind_until is None:
                self.blind_until = topic.now() + topic.rng.choice([0.0, 1.0, 30.0])
            return "unknown topic" if topic.now() >= self.blind_until else None
        cuts = self.partition.cuts[self.cuts :]
        self.cuts = len(self.partition.cuts)
        return "truncated" if any(cut < self.position for cut in cuts) else None

    def read(self) -> list[tuple[int, int, Any]]:
        """Return the new records with offset and epoch."""
        if not self.topic.reachable or self.blind_until is not None:
            return []
        begin, self.position = self.position, len(self.partition.records)
        new = self.partition.records[begin:]
        return [(begin + number, *record) for number, record in enumerate(new)]


class SimulatedAgreementLog:
    """Replacement of `agreement_log.AgreementLog` that uses a modelled topic."""

    def __init__(self, topic: Topic) -> None:
        self._topic = topic
        self._tail = Tail(topic)
        self.identity = topic.identity
        self.broken: str | None = None

    @property
    def number(self) -> int:
        """The partition's number."""
        return self._tail.number

    def append(self, record: Record) -> Sent:
        """Send a record once, without retries."""
        sent = Sent()
        self._topic.write(self._tail.number, record, sent)
        return sent

    def read(self, timeout_s: float) -> list[Entry]:
        """Return the new records."""
        del timeout_s
        if problem := self._tail.problem():
            self.broken = problem
            return []
        entries = []
        for _, epoch, value in self._tail.read():
            record = decode(value) if isinstance(value, bytes) else value
            if record is not None:
                entries.append(Entry(record, epoch))
        return entries

    def check(self, timeout_s: float) -> None:
        """Set `broken` if the group's records are no longer in this partition."""
        del timeout_s
        try:
            self._topic.answer()
            if self._topic.home() != self._tail.number:
                self.broken = "it has grown"
            elif self._topic.identity != self.identity:
                self.broken = "it was created again"
        except KafkaException:
            return

    def partition_count(self, topic: str, timeout_s: float) -> int | None:
        """Return the partition count of the application's topic, or randomly None (an outage)."""
        del timeout_s, topic
        return self._topic.rng.choice([None, PARTITIONS, PARTITIONS, PARTITIONS])

    def broker_assigns(self, timeout_s: float) -> bool:
        """Return whether the group uses the consumer protocol."""
        del timeout_s
        return self._topic.broker_assigns

    def close(self) -> None:
        """Do nothing."""


class SimulatedCoordinationTopic:
    """Replacement of `log_listener.KafkaCoordinationTopic` that uses a modelled topic."""

    name = "agreement"

    def __init__(self, topic: Topic) -> None:
        self._topic = topic

    def open(self, timeout_s: float) -> SimulatedAgreementLog:
        """Open the group's partition at its end."""
        del timeout_s
        self._topic.answer()
        return SimulatedAgreementLog(self._topic)

    def check(self, timeout_s: float) -> None:
        """Do nothing: the topic is valid."""

    def create(self, timeout_s: float) -> None:
        """Create the topic if it is reachable and does not exist."""
        del timeout_s
        if self._topic.reachable:
            self._topic.create()


class SimulatedPlanSource:
    """Replacement of a client's plan source that uses a modelled topic."""

    def __init__(self, topic: Topic) -> None:
        self._topic = topic
        self._tail = Tail(topic, 0)
        self._end = len(self._tail.partition.records)
        self.origin = Origin("plans", "cluster", topic.identity)

    @classmethod
    def open(cls, topic: Topic) -> Self | None:
        """Return a new source, or None if the topic does not exist."""
        if topic.partitions is None:
            return None
        topic.answer()
        return cls(topic)

    def read(self, timeout_s: float) -> list[PlanRecord]:
        """Return the new records."""
        del timeout_s
        if problem := self._tail.problem():
            raise ConnectionError(problem)
        return [
            PlanRecord(offset, GROUP.encode(), value, headers)
            for offset, _, (value, headers) in self._tail.read()
        ]

    def moved(self) -> bool:
        """Return whether the group's key now maps to another partition."""
        self._topic.answer()
        return self._topic.home() != self._tail.number

    def at_end(self) -> bool:
        """Return whether all records that existed when the source was opened have been read."""
        return self._tail.position >= self._end

    def close(self) -> None:
        """Do nothing."""


#: Number of partitions of the application's topic.
PARTITIONS = 6
