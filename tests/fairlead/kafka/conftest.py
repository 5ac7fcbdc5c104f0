"""Fixtures of consumer groups on the test run's broker."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from confluent_kafka import Consumer, ConsumerGroupState, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from kafka.admin import KafkaAdminClient
from kafka.protocol.consumer import JoinGroupRequest, LeaveGroupRequest, SyncGroupRequest

from fairlead.kafka.gateway import KafkaGateway
from fairlead.settings import Settings
from tests.fairlead.kafka.secured import SecuredBroker, secured_broker
from tests.waiting import PATIENCE_S, eventually
from tests.while_needed import while_needed

Join = Callable[..., list[Consumer]]
Produce = Callable[[str, list[int]], None]
Commit = Callable[[str, dict[tuple[str, int], int]], None]
#: Milliseconds. Longer than any test: members that only join send no heartbeats.
SESSION_MS = 900_000
#: Error codes of a coordinator that moves, as may happen on a busy machine.
COORDINATOR_MOVES = {14, 15, 16}


@pytest.fixture
def gateway(settings: Settings) -> Iterator[KafkaGateway]:
    """Return a gateway to the run's broker."""
    with KafkaGateway(settings.kafka) as gateway:
        yield gateway


@pytest.fixture
def join(settings: Settings) -> Iterator[Join]:
    """Return a function that has consumers join a group and waits until all partitions are owned.

    `join(group, topics, partitions, configurations) -> consumers`; they leave when the test ends.
    """
    admin = AdminClient(settings.kafka.librdkafka())
    with ExitStack() as leaving:

        def join(
            group: str, topics: list[str], partitions: int, configurations: list[dict[str, Any]]
        ) -> list[Consumer]:
            consumers = []
            for configuration in configurations:
                consumer = Consumer(
                    settings.kafka.librdkafka(
                        **{"group.id": group, "enable.auto.commit": False, **configuration}
                    )
                )
                leaving.callback(consumer.close)
                consumer.subscribe(topics)
                consumers.append(consumer)

            def settled() -> bool:
                for consumer in consumers:
                    consumer.poll(0.05)
                owned = sum(len(consumer.assignment()) for consumer in consumers)
                return owned >= partitions and stable(admin, group, len(consumers))

            eventually(settled, f"group {group} settles")
            return consumers

        yield join


def stable(admin: AdminClient, group: str, members: int) -> bool:
    """Return whether a group has this many members, none of which is still joining."""
    futures: Any = admin.describe_consumer_groups([group])
    found = futures[group].result(timeout=PATIENCE_S)
    return found.state == ConsumerGroupState.STABLE and len(found.members) >= members


@pytest.fixture
def produce(settings: Settings) -> Produce:
    """Return a function that appends this many records to each partition of a topic."""
    producer = Producer(settings.kafka.librdkafka())

    def produce(topic: str, counts: list[int]) -> None:
        for partition, count in enumerate(counts):
            for number in range(count):
                producer.produce(topic, b"record", key=str(number), partition=partition)
        assert producer.flush(PATIENCE_S) == 0

    return produce


@pytest.fixture
def commit(settings: Settings) -> Commit:
    """Return a function that commits offsets for a group that has no members."""

    def commit(group: str, offsets: dict[tuple[str, int], int]) -> None:
        consumer = Consumer(settings.kafka.librdkafka(**{"group.id": group}))
        consumer.commit(
            offsets=[TopicPartition(*partition, offset) for partition, offset in offsets.items()],
            asynchronous=False,
        )
        consumer.close()

    return commit


@pytest.fixture
def join_raw(settings: Settings) -> Iterator[Callable[[str, bytes], None]]:
    """Return a function that lets one member join a group with any bytes as metadata.

    `join_raw(group, metadata, settle=True, stay=True)`; if `settle` is false, the leader never
    assigns anything; if `stay` is false, it leaves at once.
    """
    admin = KafkaAdminClient(bootstrap_servers=settings.kafka.bootstrap_servers)

    stayed: list[tuple[str, str]] = []

    def ask(request: Any) -> Any:
        answer: Any = None

        def answered() -> bool:
            nonlocal answer
            answer = admin._manager.run(admin._manager.send, request)  # noqa: SLF001 - no public way to misbehave
            return answer.error_code not in COORDINATOR_MOVES

        eventually(answered, "the group has a coordinator")
        assert answer.error_code == 0
        return answer

    def join(group: str, metadata: bytes, *, settle: bool = True, stay: bool = True) -> None:
        joined = ask(
            JoinGroupRequest(
                group_id=group,
                session_timeout_ms=SESSION_MS,
                rebalance_timeout_ms=SESSION_MS,
                member_id="",
                protocol_type="consumer",
                protocols=[("range", metadata)],
                max_version=3,  # in newer versions a member requests its id first
            )
        )
        if settle:
            ask(
                SyncGroupRequest(
                    group_id=group,
                    generation_id=joined.generation_id,
                    member_id=joined.member_id,
                    assignments=[(joined.member_id, b"")],
                    max_version=2,
                )
            )
        if stay:
            stayed.append((group, joined.member_id))
        else:
            leave(group, joined.member_id)

    def leave(group: str, member: str) -> None:
        ask(LeaveGroupRequest(group_id=group, member_id=member, max_version=2))

    yield join
    for group, member in stayed:
        leave(group, member)
    admin.close()


@pytest.fixture(scope="session")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredBroker]:
    """Return a broker that requires a password, without users yet."""
    with while_needed("secured broker") as stack:
        yield stack.enter_context(secured_broker(tmp_path_factory.mktemp("secured")))
