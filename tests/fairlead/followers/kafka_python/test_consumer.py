"""Real kafka-python consumers: cooperative rebalances (KIP-429), short polls, removed members."""

import itertools
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from kafka import ConsumerRebalanceListener, KafkaAdminClient, KafkaConsumer, TopicPartition
from kafka.admin import MemberToRemove, NewPartitions
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor

from fairlead.errors import ConfigurationError
from fairlead.followers.client_assignors.kafka_python import StickyAssignor
from fairlead.followers.kafka_python import PlanAssignor, PlanConsumer
from fairlead.sandbox import Services
from tests.fairlead.followers.helpers import Fleet, KafkaPythonMember, recreate
from tests.waiting import eventually

pytestmark = [pytest.mark.kafka, pytest.mark.parametrize("fleet", ["kafka-python"], indirect=True)]

COOPERATIVE: dict[str, Any] = {"cooperative": True}


class Journal(ConsumerRebalanceListener):  # type: ignore[misc] # kafka-python is untyped
    """Records revoked and assigned partitions, in order."""

    def __init__(self) -> None:
        self.notes: list[tuple[str, list[int]]] = []

    def on_partitions_revoked(self, revoked: set[TopicPartition]) -> None:
        """Record the revocation."""
        self.notes.append(("revoked", sorted(number for _, number in revoked)))

    def on_partitions_lost(self, lost: set[TopicPartition]) -> None:
        """Record the loss."""
        self.notes.append(("lost", sorted(number for _, number in lost)))

    def on_partitions_assigned(self, assigned: set[TopicPartition]) -> None:
        """Record the assignment."""
        self.notes.append(("assigned", sorted(number for _, number in assigned)))


def join(fleet: Fleet, name: str, journal: Journal, **options: Any) -> KafkaPythonMember:
    """Start a plan follower that records its rebalances."""
    member = fleet.join(name, listener=journal, **options)
    assert isinstance(member, KafkaPythonMember)
    return member


def settles(fleet: Fleet, members: dict[str, KafkaPythonMember], **shares: list[int]) -> None:
    """Wait until each member owns its share."""
    topic = fleet.topics[0]
    eventually(
        lambda: {name: member.owned.get(topic, []) for name, member in members.items()} == shares,
        f"{shares}",
    )


def test_only_moved_partitions_are_revoked(fleet: Fleet) -> None:
    """If a new plan moves one partition, only this one is revoked and assigned."""
    fleet.publish(fleet.plan(1, a=[0, 1], b=[2, 3]))
    journals = {"a": Journal(), "b": Journal()}
    members = {"a": join(fleet, "a", journals["a"], **COOPERATIVE)}
    eventually(lambda: members["a"].status().plan_version == 1, "a leads by the plan")
    settles(fleet, members, a=[0, 1, 2, 3])
    members["b"] = join(fleet, "b", journals["b"], **COOPERATIVE)
    settles(fleet, members, a=[0, 1], b=[2, 3])
    fleet.publish(fleet.plan(2, a=[0], b=[1, 2, 3]))
    settles(fleet, members, a=[0], b=[1, 2, 3])
    eventually(lambda: ("assigned", [1]) in journals["b"].notes, "b is told of partition 1")
    assert journals["a"].notes == [
        ("assigned", [0, 1, 2, 3]),
        ("revoked", [2, 3]),
        ("revoked", [1]),
    ]
    assert [note for note in journals["b"].notes if note[1]] == [
        ("assigned", [2, 3]),
        ("assigned", [1]),
    ]
    eventually(
        lambda: {member.status().plan_version for member in members.values()} == {2},
        "both say that they follow the newer plan",
    )


def test_group_moves_between_cooperative_sticky_and_the_plan(fleet: Fleet) -> None:
    """A cooperative group migrates to plans and back, one member after the other."""
    sticky: dict[str, Any] = {"partition_assignment_strategy": (CooperativeStickyAssignor,)}
    fleet.publish(fleet.plan(1, a=[0], b=[1, 2, 3]))
    plain = fleet.join_plain("b", **sticky)
    follower = join(fleet, "a", Journal(), **COOPERATIVE, **sticky)
    topic = fleet.topics[0]
    eventually(
        lambda: len(follower.owned.get(topic, [])) == len(plain.owned.get(topic, [])) == 2,
        "two partitions each",
    )
    plain.stop()
    members = {"a": follower, "b": join(fleet, "b", Journal(), **COOPERATIVE, **sticky)}
    settles(fleet, members, a=[0], b=[1, 2, 3])
    members["a"].stop()
    plain = fleet.join_plain("a", **sticky)
    eventually(
        lambda: len(members["b"].owned.get(topic, [])) == len(plain.owned.get(topic, [])) == 2,
        "two partitions each again",
    )


def follower(fleet: Fleet, **configs: Any) -> KafkaConsumer:
    """Return a consumer that follows plans."""
    return PlanConsumer(**configs, plan_topic=fleet.plan_topic)


def sticky(_: Fleet, **configs: Any) -> KafkaConsumer:
    """Return a consumer with the cooperative sticky assignor."""
    assignor = StickyAssignor()
    consumer = KafkaConsumer(**configs, partition_assignment_strategy=[assignor])
    assignor.follow(consumer)
    return consumer


@pytest.mark.parametrize("new_consumer", [follower, sticky])
def test_rebalance_completes_with_short_polls(
    fleet: Fleet,
    services: Services,
    kafka_topic: Callable[..., str],
    new_consumer: Callable[..., KafkaConsumer],
) -> None:
    """A member whose poll ends during a rebalance stays a member, even if topics change."""
    connection = {"bootstrap_servers": services.bootstrap_servers}
    consumer = new_consumer(fleet, **connection, group_id=fleet.group, metadata_max_age_ms=200)
    admin = KafkaAdminClient(**connection)

    timeouts_ms = itertools.cycle((1, 2, 5, 20))  # the shortest polls end during a rebalance

    def owns(count: int) -> bool:
        consumer.poll(timeout_ms=next(timeouts_ms))
        return len(consumer.assignment()) == count

    try:
        consumer.subscribe(fleet.topics)
        eventually(lambda: owns(4), "four partitions")
        for count in (5, 6, 7):
            admin.create_partitions({fleet.topics[0]: NewPartitions(count)})
            eventually(partial(owns, count), f"{count} partitions")
        consumer.subscribe([*fleet.topics, kafka_topic(partitions=2)])
        eventually(lambda: owns(9), "the other topic's partitions too")
    finally:
        admin.close()
        consumer.close()


@pytest.mark.parametrize("options", [{}, COOPERATIVE])
def test_member_removed_while_joining_loses_its_partitions(
    fleet: Fleet, services: Services, options: dict[str, Any]
) -> None:
    """The member reports its partitions as lost, and reads from the committed offsets."""
    journal = Journal()
    connection = {"bootstrap_servers": services.bootstrap_servers}
    consumer = follower(fleet, **connection, group_id=fleet.group, **options)

    def owns() -> bool:
        consumer.poll(timeout_ms=100)
        return bool(consumer.assignment()) and not coordinator.rejoining

    try:
        coordinator = consumer._coordinator  # noqa: SLF001 - there is no other way
        consumer.subscribe(fleet.topics, listener=journal)
        eventually(owns, "all partitions")
        for partition in consumer.assignment():
            consumer.seek(partition, 100)  # differs from the committed offset
        coordinator.maybe_leave_group()
        coordinator.rejoining = True  # simulates a rejoin in progress
        eventually(owns, "all partitions again")
        assert journal.notes[-2:] == [("lost", [0, 1, 2, 3]), ("assigned", [0, 1, 2, 3])]
        assert {consumer.position(partition) for partition in consumer.assignment()} == {0}
    finally:
        consumer.close()


def owns_all(consumer: PlanConsumer) -> Callable[[], bool]:
    """Return a function that polls, and returns whether the member owns all four partitions."""

    def polled() -> bool:
        consumer.poll(timeout_ms=100)
        settled = not consumer._coordinator.need_rejoin()  # noqa: SLF001 - there is no other way
        return len(consumer.assignment()) == 4 and settled

    return polled


def test_eager_member_continues_at_the_commit_and_stays_paused(
    fleet: Fleet, services: Services
) -> None:
    """After a rebalance, the member reads from committed offsets, and partitions stay paused."""
    connection = {"bootstrap_servers": services.bootstrap_servers}
    consumer = follower(fleet, **connection, group_id=fleet.group, enable_auto_commit=False)
    try:
        consumer.subscribe(fleet.topics)
        eventually(owns_all(consumer), "all partitions")
        for partition in consumer.assignment():
            consumer.seek(partition, 100)  # differs from the committed offset
        paused = TopicPartition(fleet.topics[0], 2)
        consumer.pause(paused)
        consumer._coordinator.request_rejoin()  # noqa: SLF001 - there is no other way
        eventually(owns_all(consumer), "all partitions again")
        assert consumer.paused() == {paused}
        assert {consumer.position(partition) for partition in consumer.assignment()} == {0}
    finally:
        consumer.close()


def test_removed_eager_member_calls_its_listener(fleet: Fleet, services: Services) -> None:
    """The member reports its partitions as lost, because other members may have read them."""
    journal = Journal()
    connection = {"bootstrap_servers": services.bootstrap_servers}
    rare = {"session_timeout_ms": 300_000, "heartbeat_interval_ms": 290_000}
    configs = {**connection, **rare, "group_id": fleet.group, "enable_auto_commit": False}
    consumer = follower(fleet, **configs)
    admin = KafkaAdminClient(**connection)
    try:
        consumer.subscribe(fleet.topics, listener=journal)
        eventually(owns_all(consumer), "all partitions")
        me = MemberToRemove(member_id=consumer.group_metadata().member_id)
        admin.remove_group_members(fleet.group, [me])
        consumer._coordinator.request_rejoin()  # noqa: SLF001 - there is no other way
        eventually(owns_all(consumer), "all partitions again")
        every = [0, 1, 2, 3]
        assert journal.notes[-3:] == [("revoked", every), ("lost", every), ("assigned", every)]
    finally:
        admin.close()
        consumer.close()


def test_cooperative_assignor_needs_its_consumer(fleet: Fleet, services: Services) -> None:
    """Without its consumer, the assignor raises an error, because its claims could be outdated."""
    connection = {"bootstrap_servers": services.bootstrap_servers}
    assignor = PlanAssignor(fleet.group, connection, cooperative=True)
    try:
        with pytest.raises(ConfigurationError, match="follow"):
            assignor.metadata({"t"})
    finally:
        assignor.close()


def test_plans_of_a_topic_that_was_created_again_are_adopted(
    fleet: Fleet, services: Services
) -> None:
    """Followers notice a recreated plan topic, although the offsets in it begin at 0 again."""
    fleet.publish(fleet.plan(1, a=[0, 1, 2, 3]))
    member = fleet.join("a")
    eventually(lambda: member.status().plan_version == 1, "the plan is followed")
    recreate(services, fleet.plan_topic, partitions=5)
    fleet.publish(fleet.plan(2, a=[0, 1, 2, 3]))
    eventually(lambda: member.status().plan_version == 2, "the newer plan is followed")
