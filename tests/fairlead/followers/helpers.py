"""Helpers of the plan follower tests: plans, a publisher, and consumers on threads."""

import asyncio
import json
import random
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from queue import Empty, Queue
from typing import Any, Literal, Protocol

import numpy as np
from aiokafka import AIOKafkaConsumer
from aiokafka.coordinator.assignors.range import RangePartitionAssignor as AiokafkaRange
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic
from kafka import KafkaConsumer, KafkaProducer
from kafka.coordinator.assignors.range import RangePartitionAssignor as KafkaPythonRange

from fairlead.followers import aiokafka, kafka_python
from fairlead.followers.confluent import PlanConsumer
from fairlead.followers.core.plan_cache import PlanRecord
from fairlead.followers.core.status import FollowerStatus
from fairlead.sandbox import Services
from fairlead.surfaces.demo.topics_and_consumers import Consumers
from fairlead.wire.document import MemberShare, PlanDocument, content_hash
from fairlead.wire.partitions import by_topic
from fairlead.wire.record import Headers, Identity, Origin
from fairlead.wire.signing import Signer
from tests.records import SIGNER, origin_of, signed, unsigned
from tests.waiting import PATIENCE_S, eventually

DAY = datetime(2026, 1, 1, tzinfo=UTC)
Owned = dict[str, list[int]]
Client = Literal["kafka-python", "aiokafka"]
CLIENTS: tuple[Client, ...] = ("kafka-python", "aiokafka")


def make_plan(
    members: Mapping[str, Owned],
    *,
    partition_counts: Mapping[str, int],
    group: str = "group",
    version: int = 1,
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


def make_big_plan(members: Mapping[str, Owned], *, group: str, version: int) -> PlanDocument:
    """Return a plan of more than 5 MB; its topics have four partitions each."""
    count = 500_000
    weights = np.random.default_rng(1).integers(10**9, 10**10, count).tolist()
    topics = {topic for share in members.values() for topic in share}
    plan = make_plan(
        members,
        partition_counts={**dict.fromkeys(topics, 4), "of-other-days": count},
        group=group,
        version=version,
        weights={"of-other-days": weights},
    )
    assert len(plan.to_bytes()) > 5_000_000
    return plan


def spoilt(newer: PlanDocument, origin: Origin) -> dict[str, tuple[bytes | None, Headers]]:
    """Return, for each kind of defect, a record that no plan follower may accept.

    Parameters
    ----------
    newer
        A valid plan for at least two members, newer than the followed plan.
    origin
        The topic's name, cluster id and topic id, which are part of the signed bytes.
    """
    good = newer.to_bytes()

    def sign(value: bytes, **changes: Any) -> tuple[bytes, Headers]:
        headers = {"group": newer.group, "version": newer.version, "origin": origin}
        return value, signed(value, **{**headers, **changes})

    raw = json.loads(good)
    first, second, *_ = raw["members"].values()
    owned_twice = {"a": first, "b": {**second, "partitions": first["partitions"]}}
    values = {
        "random bytes": random.Random(1).randbytes(500),
        "truncated": good[: len(good) // 2],
        "empty": b"",
        "another format": json.dumps({**raw, "format": 99}).encode(),
        "another group's name": json.dumps({**raw, "group": "another"}).encode(),
        "a partition owned twice": json.dumps({**raw, "members": owned_twice}).encode(),
    }
    return {
        **{how: sign(value) for how, value in values.items()},
        "unsigned": sign(good, signer=None),
        "stripped of what is signed": (good, unsigned(good)),
        "signed with another key": sign(good, signer=Signer.new(SIGNER.key_id)),
        "signed for another cluster": sign(good, origin=replace(origin, cluster="another")),
        "signed for another topic": sign(good, origin=replace(origin, topic="another")),
        "signed for another group": sign(good, group="another"),
        "signed for another version": sign(good, version=newer.version - 1),
        "a tombstone": (None, []),
    }


def wait_until_settled(consumers: Consumers) -> None:
    """Wait until all worker processes have joined, and every partition has one owner."""

    def settled() -> bool:
        consumers.update()
        return consumers.settled

    eventually(settled, "all consumers have joined")


def recreate(services: Services, topic: str, *, partitions: int = 1) -> None:
    """Delete a topic and create a new topic of the same name."""
    admin = AdminClient({"bootstrap.servers": services.bootstrap_servers})
    admin.delete_topics([topic])[topic].result(timeout=PATIENCE_S)

    def is_made() -> bool:
        try:
            new = NewTopic(topic, partitions, 1)
            admin.create_topics([new], request_timeout=PATIENCE_S)[topic].result(PATIENCE_S)
        except KafkaException:  # the deleted topic may still exist
            return False
        return True

    eventually(is_made, "the topic is created again")


class ScriptedSource:
    """A plan source that returns the records, or raises the errors, that tests put in `feed`."""

    origin = Origin("fairlead.plans")

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

    def moved(self) -> bool:
        """Return False: the group's key always maps to the same partition."""
        return False

    def at_end(self) -> bool:
        """Return whether the test has set `ended` and all records in `feed` have been read."""
        return self.ended.is_set() and self.feed.empty()

    def close(self) -> None:
        """Record that the reader has closed the source."""
        self.closed = True


def seen(version: int) -> Identity:
    """Return the identity that a plan follower reports once it has read this plan version."""
    plan = make_plan({"a": {"t": [0]}}, partition_counts={"t": 1}, version=version)
    return Identity(1, version, sha256=content_hash(plan.to_bytes()))


def record(offset: int, version: int | None) -> PlanRecord:
    """Return a record with a small plan of this version, or a tombstone if the version is None."""
    if version is None:
        return PlanRecord(offset, b"group", None)
    plan = make_plan({"a": {"t": [0]}}, partition_counts={"t": 1}, version=version)
    value = plan.to_bytes()
    return PlanRecord(offset, b"group", value, tuple(unsigned(value)))


class Member(Protocol):
    """A real consumer that polls on a thread until it is stopped."""

    @property
    def owned(self) -> Owned:
        """The assigned partitions."""

    def status(self) -> FollowerStatus:
        """Return the status; only for plan followers."""

    def stop(self) -> None:
        """Leave the group."""


class _PollingMember(ABC):
    """A consumer of any client library, polled on a thread."""

    consumer: Any

    def __init__(self) -> None:
        self.values: list[bytes] = []
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    @property
    def owned(self) -> Owned:
        """The assigned partitions."""
        return by_topic(self.consumer.assignment())

    def status(self) -> FollowerStatus:
        """Return the plan follower's status."""
        status: FollowerStatus = self.consumer.plan_assignor.status()
        return status

    def begin_to_stop(self) -> None:
        """Ask the thread to leave the group."""
        self._stopping.set()

    def stop(self) -> None:
        """Leave the group."""
        self.begin_to_stop()
        self._thread.join(timeout=PATIENCE_S)
        assert not self._thread.is_alive()

    @abstractmethod
    def _run(self) -> None:
        """Poll until stopped."""


class KafkaPythonMember(_PollingMember):
    """A kafka-python consumer on a thread."""

    def __init__(self, consumer: KafkaConsumer) -> None:
        self.consumer = consumer
        super().__init__()

    def _run(self) -> None:
        try:
            while not self._stopping.is_set():
                for records in self.consumer.poll(timeout_ms=100).values():
                    self.values += [record.value for record in records]
        finally:
            self.consumer.close()


class AiokafkaMember(_PollingMember):
    """An aiokafka consumer on an event loop on a thread."""

    def __init__(self, new_consumer: Callable[[], AIOKafkaConsumer]) -> None:
        self._new_consumer = new_consumer
        self._made: Future[AIOKafkaConsumer] = Future()
        super().__init__()
        self.consumer = self._made.result(timeout=PATIENCE_S)

    def _run(self) -> None:
        asyncio.run(self._poll())

    async def _poll(self) -> None:
        consumer = self._new_consumer()
        self._made.set_result(consumer)
        await consumer.start()
        try:
            while not self._stopping.is_set():
                for records in (await consumer.getmany(timeout_ms=100)).values():
                    self.values += [record.value for record in records]
        finally:
            await consumer.stop()


class ConfluentMember(_PollingMember):
    """A confluent-kafka plan follower on a thread."""

    def __init__(self, consumer: PlanConsumer, topics: list[str]) -> None:
        self.consumer = consumer
        self._topics = topics
        super().__init__()

    @property
    def owned(self) -> Owned:
        """The assigned partitions."""
        return {topic: list(numbers) for topic, numbers in self.status().owned.items()}

    def status(self) -> FollowerStatus:
        """Return the plan follower's status."""
        status: FollowerStatus = self.consumer.status()
        return status

    def _run(self) -> None:
        self.consumer.subscribe(self._topics)
        try:
            while not self._stopping.is_set():
                message = self.consumer.poll(0.1)
                if message is not None and message.error() is None:
                    self.values.append(message.value())
        finally:
            self.consumer.close()


class Fleet:
    """The consumers of one group on one broker, and the plan topic they follow."""

    def __init__(
        self,
        services: Services,
        group: str,
        plan_topic: str,
        topics: list[str],
        client: Client = "kafka-python",
    ) -> None:
        self._services = services
        self.client = client
        self.group = group
        self.plan_topic = plan_topic
        self.topics = topics
        self._connection = {"bootstrap_servers": services.bootstrap_servers}
        self._members: list[_PollingMember] = []
        self._stack = ExitStack()
        self._producer = KafkaProducer(**self._connection, max_request_size=10_000_000)
        self._stack.callback(self._producer.close)

    @property
    def range_only(self) -> dict[str, Any]:
        """Options that limit a plain consumer to `range`, the only protocol of plan followers."""
        kinds = {"kafka-python": KafkaPythonRange, "aiokafka": AiokafkaRange}
        return {"partition_assignment_strategy": (kinds[self.client],)}

    def join(self, client_id: str, *, client: Client | None = None, **options: Any) -> Member:
        """Start a plan follower."""
        options = {
            "plan_topic": self.plan_topic,
            "rejoin_jitter_s": 0.2,
            "read_timeout_s": PATIENCE_S,
            **options,
        }
        if (client or self.client) == "aiokafka":
            return self._start_aiokafka(aiokafka.PlanConsumer, client_id, options)
        return self._start_kafka_python(kafka_python.PlanConsumer, client_id, options)

    def join_plain(self, client_id: str, *, client: Client | None = None, **options: Any) -> Member:
        """Start a consumer that does not follow plans."""
        if (client or self.client) == "aiokafka":
            return self._start_aiokafka(AIOKafkaConsumer, client_id, options)
        return self._start_kafka_python(KafkaConsumer, client_id, options)

    def plan(self, version: int, **shares: list[int]) -> PlanDocument:
        """Return a plan for the first topic, whose partitions are all in the members' shares."""
        topic, count = self.topics[0], sum(map(len, shares.values()))
        members = {name: {topic: share} for name, share in shares.items()}
        counts = {topic: count}
        return make_plan(members, partition_counts=counts, group=self.group, version=version)

    def publish(self, plan: PlanDocument) -> None:
        """Publish a plan."""
        value = plan.to_bytes()
        self.send(value, unsigned(value))

    @property
    def origin(self) -> Origin:
        """The plan topic's name, cluster id and topic id, which are part of the signed bytes."""
        return origin_of(self._services, self.plan_topic)

    def send(self, value: bytes | None, headers: list[tuple[str, bytes]] | None = None) -> None:
        """Send any record with the group's key to the plan topic."""
        self._producer.send(
            self.plan_topic, key=self.group.encode(), value=value, headers=headers or []
        ).get(timeout=PATIENCE_S)

    def close(self) -> None:
        """Stop every consumer, and close the producer."""
        for member in self._members:
            member.begin_to_stop()
        self._stack.close()

    def _start_kafka_python(
        self, kind: type[KafkaConsumer], client_id: str, options: dict[str, Any]
    ) -> Member:
        listener = options.pop("listener", None)
        topics, configs = self._configs(client_id, options)
        consumer = kind(**configs)
        consumer.subscribe(topics, listener=listener)
        return self._started(KafkaPythonMember(consumer))

    def _start_aiokafka(
        self, kind: type[AIOKafkaConsumer], client_id: str, options: dict[str, Any]
    ) -> Member:
        new_listener = options.pop("listener", None)
        topics, configs = self._configs(client_id, options)

        def new_consumer() -> AIOKafkaConsumer:
            consumer = kind(**configs)
            consumer.subscribe(topics, listener=new_listener(consumer) if new_listener else None)
            return consumer

        return self._started(AiokafkaMember(new_consumer))

    def _configs(self, client_id: str, options: dict[str, Any]) -> tuple[list[str], dict[str, Any]]:
        configs = {
            **self._connection,
            "group_id": self.group,
            "client_id": client_id,
            "session_timeout_ms": 60_000,
            "heartbeat_interval_ms": 300,
            **options,
        }
        return configs.pop("topics", self.topics), configs

    def _started(self, member: _PollingMember) -> Member:
        self._members.append(member)
        self._stack.callback(member.stop)
        return member
