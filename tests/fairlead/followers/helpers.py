"""What the follower tests share: plans, a publisher, and consumers that run on threads."""

import threading
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from datetime import UTC, datetime
from queue import Empty, Queue
from typing import Any

import numpy as np
from kafka import KafkaConsumer, KafkaProducer

from fairlead.followers.kafka_python import PlanConsumer
from fairlead.followers.plan_cache import PlanRecord
from fairlead.plans.document import MemberShare, PlanDocument, record_headers
from fairlead.sandbox import Services

DAY = datetime(2026, 1, 1, tzinfo=UTC)
Owned = dict[str, list[int]]


def make_plan(
    members: Mapping[str, Owned],
    *,
    partition_counts: Mapping[str, int],
    group: str = "group",
    version: int = 1,
    expires_at: datetime | None = None,
    weights: Mapping[str, list[float]] | None = None,
) -> PlanDocument:
    """Return a plan in which each member subscribes to every topic."""
    return PlanDocument(
        group=group,
        version=version,
        plan_id=f"plan-{version}",
        assignor="lag-aware",
        created_at=DAY,
        snapshot_at=DAY,
        expires_at=expires_at,
        partition_counts=partition_counts,
        members={
            name: MemberShare(
                tuple(sorted(partition_counts)),
                {topic: np.array(owned, np.int32) for topic, owned in share.items()},
            )
            for name, share in members.items()
        },
        weights={topic: np.array(values, float) for topic, values in (weights or {}).items()},
    )


def eventually(condition: Callable[[], bool], what: str, *, within_s: float = 30.0) -> None:
    """Wait until a condition holds; fail with `what` when it does not in time."""
    deadline = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline, f"not within {within_s:.0f} s: {what}"
        time.sleep(0.02)


class ScriptedSource:
    """A partition whose records the test puts in; reading an exception raises it."""

    def __init__(self, *records: PlanRecord) -> None:
        self.feed: Queue[PlanRecord | Exception] = Queue()
        self.ended = threading.Event()
        self.closed = False
        self.reads = 0
        for record in records:
            self.feed.put(record)

    def read(self, timeout_s: float) -> list[PlanRecord]:
        """Return the next record, if there is one."""
        self.reads += 1
        try:
            item = self.feed.get(timeout=min(timeout_s, 0.01))
        except Empty:
            return []
        if isinstance(item, Exception):
            raise item
        return [item]

    def at_end(self) -> bool:
        """Whether the test has said so and all is read."""
        return self.ended.is_set() and self.feed.empty()

    def close(self) -> None:
        """Note that the reader let go."""
        self.closed = True


def record(offset: int, version: int | None) -> PlanRecord:
    """Return a record with a small plan of this version; None: a tombstone."""
    if version is None:
        return PlanRecord(offset, b"group", None)
    plan = make_plan({"a": {"t": [0]}}, partition_counts={"t": 1}, version=version)
    value = plan.to_bytes()
    return PlanRecord(offset, b"group", value, tuple(record_headers(value)))


class Member:
    """A real consumer that polls on a thread until it is told to stop."""

    def __init__(self, consumer: KafkaConsumer) -> None:
        self.consumer = consumer
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._poll)
        self._thread.start()

    @property
    def owned(self) -> Owned:
        """What the consumer is assigned now."""
        owned: Owned = {}
        for topic, partition in sorted(self.consumer.assignment()):
            owned.setdefault(topic, []).append(partition)
        return owned

    def stop(self) -> None:
        """Leave the group."""
        self._stopping.set()
        self._thread.join(timeout=30)
        assert not self._thread.is_alive()

    def _poll(self) -> None:
        try:
            while not self._stopping.is_set():
                self.consumer.poll(timeout_ms=100)
        finally:
            self.consumer.close()


class Fleet:
    """The consumers of one group on one broker, and the plan topic they follow."""

    def __init__(self, services: Services, group: str, plan_topic: str, topics: list[str]) -> None:
        self.group = group
        self.plan_topic = plan_topic
        self.topics = topics
        self._connection = {"bootstrap_servers": services.bootstrap_servers}
        self._stack = ExitStack()
        self._producer = KafkaProducer(**self._connection)
        self._stack.callback(self._producer.close)

    def join(self, client_id: str, **options: Any) -> Member:
        """Start a follower."""
        options = {"plan_topic": self.plan_topic, "rejoin_jitter_s": 0.2, **options}
        return self._start(PlanConsumer, client_id, **options)

    def join_plain(self, client_id: str, **options: Any) -> Member:
        """Start a consumer that knows no plans."""
        return self._start(KafkaConsumer, client_id, **options)

    def publish(self, plan: PlanDocument) -> None:
        """Publish a plan."""
        value = plan.to_bytes()
        self.send(value, record_headers(value))

    def send(self, value: bytes | None, headers: list[tuple[str, bytes]] | None = None) -> None:
        """Put any record under the group's key."""
        self._producer.send(
            self.plan_topic, key=self.group.encode(), value=value, headers=headers or []
        ).get(timeout=30)

    def close(self) -> None:
        """End every consumer."""
        self._stack.close()

    def _start(self, kind: type[KafkaConsumer], client_id: str, **options: Any) -> Member:
        consumer = kind(
            *options.pop("topics", self.topics),
            **self._connection,
            group_id=self.group,
            client_id=client_id,
            heartbeat_interval_ms=300,
            **options,
        )
        member = Member(consumer)
        self._stack.callback(member.stop)
        return member
