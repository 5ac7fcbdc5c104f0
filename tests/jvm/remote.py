"""Helpers for a broker that follows plans, and for plain KIP-848 consumers in its groups.

Belongs here: actions in tests of the broker's assignor. Belongs elsewhere: assertions.
"""

import threading
import time
import uuid
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Self

import numpy as np
from confluent_kafka import Consumer, KafkaException, Producer, TopicCollection, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from fairlead.sandbox.kafka import KafkaBroker
from fairlead.wire.document import MemberShare, PlanDocument
from fairlead.wire.members_record import Membership
from fairlead.wire.partitions import kafka_uuid
from fairlead.wire.record import Headers, Origin, plan_headers, withdrawn_value
from fairlead.wire.signing import Signer
from tests.cluster import QUIET, KafkaCluster
from tests.jvm.asking import Program
from tests.topics import create_topics
from tests.waiting import PATIENCE_S, eventually

PLANS: Final = "fairlead.plans"
MEMBERS: Final = "fairlead.members"
#: The user name under which the assignor reads plans on a broker with ACLs.
READER: Final = "reader"
#: Number of polls, 50 ms each, before a rebalance trigger leaves. If the broker reads a plan only
#: after the trigger has joined, the broker assigns by the plan once the trigger leaves.
STAYS: Final = 60


def jmx_of(broker: KafkaBroker, checks: Program) -> dict[str, Any]:
    """Return the JMX attributes of a broker's assignor, by name."""
    process = broker.process()
    assert process is not None
    found: dict[str, Any] = checks.ask("beans", process=str(process.pid))
    return found


def rights(kind: type[Any], operation: AclOperation) -> list[Any]:
    """Return objects of type `kind` that allow an operation on the plan topic and members topic."""
    return [
        kind(
            ResourceType.TOPIC,
            topic,
            ResourcePatternType.LITERAL,
            f"User:{READER}",
            "*",
            operation,
            AclPermissionType.ALLOW,
        )
        for topic in (PLANS, MEMBERS)
    ]


def allow(cluster: "Cluster", operation: AclOperation) -> None:
    """Allow the broker's assignor an operation on the plan topic and the members topic."""
    for done in cluster.admin.create_acls(rights(AclBinding, operation)).values():
        done.result(PATIENCE_S)


def forbid(cluster: "Cluster", operation: AclOperation) -> None:
    """Revoke the rights that `allow` has granted."""
    for done in cluster.admin.delete_acls(rights(AclBindingFilter, operation)).values():
        assert len(done.result(PATIENCE_S)) == 1


class Cluster:
    """One or several running brokers, and the planner's actions on them.

    Parameters
    ----------
    broker
        The broker or brokers.
    signer
        Signs plans; if None, plans are not signed.
    """

    def __init__(self, broker: KafkaBroker | KafkaCluster, signer: Signer | None = None) -> None:
        self.signer = signer
        self.servers = broker.bootstrap_servers
        quiet = {"bootstrap.servers": self.servers, **QUIET}
        self.admin = AdminClient(quiet)
        self._producer = Producer({**quiet, "message.max.bytes": 8_000_000})
        self._epoch = time.time_ns() // 1_000_000

    def create(self, topic: str, partitions: int, *, compact: bool = False) -> str:
        """Create a topic unless it exists; return its name."""
        if topic in self.admin.list_topics().topics:
            return topic
        config = {"cleanup.policy": "compact"} if compact else {}
        new = NewTopic(topic, partitions, config=config)
        create_topics(self.admin, new)
        eventually(lambda: topic in self.admin.list_topics().topics, f"topic {topic} is there")
        return topic

    def topic_id(self, topic: str) -> str:
        """Return a topic's id."""
        found = self.admin.describe_topics(TopicCollection([topic]))[topic].result(
            timeout=PATIENCE_S
        )
        return kafka_uuid(str(found.topic_id))

    def publish(
        self,
        group: str,
        version: int,
        shares: Mapping[str, Mapping[str, list[int]]],
        counts: Mapping[str, int],
        *,
        lease: timedelta = timedelta(hours=1),
    ) -> PlanDocument:
        """Publish a plan, and return it."""
        now = datetime.now(UTC)
        members = {
            name: MemberShare(
                tuple(counts), {topic: np.array(p, np.int32) for topic, p in share.items()}
            )
            for name, share in shares.items()
        }
        ids = {topic: self.topic_id(topic) for topic in counts}
        plan = PlanDocument(
            group, version, str(uuid.uuid4()), "tests", now, now, counts, members, topic_ids=ids
        )
        value = plan.to_bytes()
        self._send(PLANS, group, value, self._headers(value, group, version, now + lease))
        return plan

    def withdraw(self, group: str, version: int) -> None:
        """Withdraw a plan."""
        value = withdrawn_value(group, version)
        headers = plan_headers(
            value,
            group=group,
            version=version,
            origin=self._origin(PLANS),
            epoch=self._epoch,
            lease_until=None,
            kind="withdrawn",
            signer=self.signer,
        )
        self._send(PLANS, group, value, headers)

    def garble(self, group: str) -> None:
        """Write a record of garbage with the plan's key."""
        self._send(PLANS, group, b"garbage", [])

    def inflate(self, group: str, numbers: str = "0-9999999") -> None:
        """Publish a short document whose plan has ten million partitions.

        `numbers` has the partitions of the only member, as ranges.
        """
        now = datetime.now(UTC)
        share = MemberShare(("t",), {"t": np.array([0])})
        plan = PlanDocument(group, 1, "p", "tests", now, now, {"t": 10_000_000}, {"m": share})
        value = plan.to_bytes().replace(b'"t":"0"', b'"t":"%s"' % numbers.encode())
        self._send(PLANS, group, value, self._headers(value, group, 1, now + timedelta(hours=1)))

    def tell(self, group: str, topics: list[str]) -> None:
        """Publish the names of the group's members, which are their client ids."""
        names = self.names(group)
        ids = {topic: self.topic_id(topic) for topic in topics}
        membership = Membership(group, datetime.now(UTC), names, ids)
        headers = membership.headers(origin=self._origin(MEMBERS), signer=self.signer)
        self._send(MEMBERS, group, membership.to_bytes(), headers)

    def trigger(self, group: str, rack: str, until: Callable[[], bool], what: str) -> None:
        """Trigger rebalances until a condition holds."""
        eventually(lambda: self._triggered(group, rack, until), what)

    def _triggered(self, group: str, rack: str, until: Callable[[], bool]) -> bool:
        trigger = Consumer(
            {
                "bootstrap.servers": self.servers,
                "group.id": group,
                "group.protocol": "consumer",
                "client.id": "rebalance trigger",
                "client.rack": f"fairlead:{rack}",
            }
        )
        try:
            trigger.subscribe([PLANS])
            for _ in range(STAYS):
                trigger.poll(0.05)
                assert not trigger.assignment(), "a rebalance trigger was given something"
                if until():
                    return True
        finally:
            trigger.close()
        return until()

    def names(self, group: str) -> dict[str, str]:
        """Return the client id of each member id; the result is empty for a new group."""
        # clock: may time out on a slow machine; callers then try again
        futures: Any = self.admin.describe_consumer_groups([group], request_timeout=30)
        try:
            members = futures[group].result(timeout=PATIENCE_S).members
        except KafkaException:  # the offsets topic may not exist yet
            return {}
        return {member.member_id: member.client_id for member in members}

    def _origin(self, topic: str) -> Origin:
        return Origin(topic, self.admin.list_topics().cluster_id, self.topic_id(topic))

    def _headers(self, value: bytes, group: str, version: int, until: datetime) -> Headers:
        return plan_headers(
            value,
            group=group,
            version=version,
            origin=self._origin(PLANS),
            epoch=self._epoch,
            lease_until=until,
            signer=self.signer,
        )

    def _send(self, topic: str, group: str, value: bytes, headers: Headers) -> None:
        self._producer.produce(topic, key=group.encode(), value=value, headers=[*headers])
        assert self._producer.flush(PATIENCE_S) == 0


class MemberEndedError(Exception):
    """A static member was ended by librdkafka, because the broker was slow.

    If the broker answers a heartbeat later than after `group.consumer.heartbeat.interval.ms`,
    librdkafka may join again while the broker still counts the member. Kafka then refuses its
    `group.instance.id`, and librdkafka gives up.
    """


class Plain:
    """A plain consumer on a thread, with the assignor `fairlead`.

    `revoked` has the partitions that the consumer lost while running. A static member keeps its
    partitions while it is stopped. `ended`: see `MemberEndedError`.
    """

    def __init__(
        self, servers: str, group: str, topic: str, name: str, *, static: bool = False
    ) -> None:
        self.name = name
        self.owned: set[int] = set()
        self.revoked: list[int] = []
        self.ended = False
        self._topic = topic
        self._stopping = threading.Event()
        self._consumer = Consumer(
            {
                "bootstrap.servers": servers,
                "group.id": group,
                "group.protocol": "consumer",
                "group.remote.assignor": "fairlead",
                "client.id": name,
                "auto.offset.reset": "earliest",
                "log_level": 2,
                **({"group.instance.id": name} if static else {}),
            }
        )
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        self._consumer.subscribe([self._topic], on_assign=self._assign, on_revoke=self._revoke)
        while not self._stopping.is_set():
            message = self._consumer.poll(0.05)
            error = message.error() if message is not None else None
            self.ended = self.ended or (error is not None and "instance ID" in error.str())
        self._consumer.close()

    def _assign(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        consumer.incremental_assign(partitions)
        self.owned = self.owned | {partition.partition for partition in partitions}

    def _revoke(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        consumer.incremental_unassign(partitions)
        if not self._stopping.is_set():
            self.revoked += [partition.partition for partition in partitions]
        self.owned = self.owned - {partition.partition for partition in partitions}


class Group:
    """Plain consumers of one group and one topic: all of them static members, or all dynamic."""

    def __init__(
        self, cluster: Cluster, name: str, topic: str, partitions: int, *, static: bool = False
    ) -> None:
        self.cluster = cluster
        self.static = static
        self.name = name
        self.topic = topic
        self.partitions = partitions
        self.members: dict[str, Plain] = {}
        self._leave: dict[str, ExitStack] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        for name in list(self.members):
            self.leave(name)

    def join(self, *names: str) -> None:
        """Let members join, and wait until all partitions have owners."""
        for name in names:
            self._leave[name] = ExitStack()
            member = Plain(self.cluster.servers, self.name, self.topic, name, static=self.static)
            self.members[name] = self._leave[name].enter_context(member)
        eventually(self.joined, lambda: (self.owned(), self.cluster.names(self.name)))

    def joined(self) -> bool:
        """Return whether the broker knows all members, and every partition has one owner."""
        return len(self.cluster.names(self.name)) == len(self.members) and self.whole()

    def leave(self, name: str) -> None:
        """Let a member leave."""
        del self.members[name]
        self._leave.pop(name).close()

    def owned(self) -> dict[str, list[int]]:
        """Return the partitions of each member."""
        if any(member.ended for member in self.members.values()):
            raise MemberEndedError
        return {name: sorted(member.owned) for name, member in self.members.items()}

    def whole(self) -> bool:
        """Return whether each partition has one owner."""
        owned = [number for share in self.owned().values() for number in share]
        return sorted(owned) == list(range(self.partitions))

    def revoked(self) -> dict[str, list[int]]:
        """Return the partitions revoked from each member since the last call."""
        found = {name: sorted(member.revoked) for name, member in self.members.items()}
        for member in self.members.values():
            member.revoked = []
        return {name: lost for name, lost in found.items() if lost}

    def adopt(self, version: int, shares: Mapping[str, list[int]]) -> None:
        """Publish a plan, and trigger rebalances until all members own their shares."""
        self.publish(version, shares)
        self.cluster.tell(self.name, [self.topic])
        expected = {name: sorted(share) for name, share in shares.items()}
        rack = f"{self.name}:{version}"
        self.cluster.trigger(self.name, rack, lambda: self.owned() == expected, f"{expected}")

    def publish(
        self,
        version: int,
        shares: Mapping[str, list[int]],
        *,
        lease: timedelta = timedelta(hours=1),
    ) -> None:
        """Publish a plan for the group's topic."""
        plan = {name: {self.topic: share} for name, share in shares.items()}
        counts = {self.topic: self.partitions}
        self.cluster.publish(self.name, version, plan, counts, lease=lease)
