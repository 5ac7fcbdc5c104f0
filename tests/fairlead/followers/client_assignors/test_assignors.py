"""Real groups whose consumers use our assignors without plans; one has a Java consumer."""

import os
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.structs import OffsetAndMetadata

from fairlead.errors import ConfigurationError
from fairlead.followers.client_assignors import aiokafka as aiokafka_assignors
from fairlead.followers.client_assignors import kafka_python as kafka_python_assignors
from fairlead.sandbox import Services
from fairlead.sandbox.jars import kafka_classpath
from fairlead.sandbox.java import BRIEF, find_java
from tests.fairlead.followers.helpers import Fleet, Member, Owned
from tests.waiting import PATIENCE_S, eventually

pytestmark = pytest.mark.kafka

#: Lag of each partition of the fleet; partition 0 has as much as the others together.
LAGS = (90, 40, 30, 20)


def module_of(fleet: Fleet) -> Any:
    """Return the module with the assignors for the fleet's client."""
    return aiokafka_assignors if fleet.client == "aiokafka" else kafka_python_assignors


def join(fleet: Fleet, name: str, kind: str, services: Services) -> Member:
    """Start a consumer of the fleet's client, with the assignor class `kind`."""
    connection = {
        "bootstrap_servers": services.bootstrap_servers,
        "auto_offset_reset": "earliest",
    }
    assignor = getattr(module_of(fleet), kind)(fleet.group, connection)
    return fleet.join_plain(
        name,
        partition_assignment_strategy=(assignor,),
        enable_auto_commit=False,
        auto_offset_reset="earliest",
    )


def backlog(fleet: Fleet, services: Services) -> None:
    """Produce records and commit some offsets, so that the partitions have `LAGS`."""
    topic = fleet.topics[0]
    producer = KafkaProducer(bootstrap_servers=services.bootstrap_servers)
    for partition, lag in enumerate(LAGS):
        for _ in range(lag + 5):
            producer.send(topic, partition=partition, value=b"x")
    producer.close()
    reader = KafkaConsumer(
        bootstrap_servers=services.bootstrap_servers, group_id=fleet.group, enable_auto_commit=False
    )
    read = {TopicPartition(topic, number): OffsetAndMetadata(5, "", -1) for number in range(3)}
    reader.assign(list(read))
    reader.commit(read)
    reader.close()


def shares(fleet: Fleet, members: Mapping[str, Member]) -> list[list[int]]:
    return sorted(member.owned.get(fleet.topics[0], []) for member in members.values())


@pytest.mark.parametrize("kind", ["LagAwareAssignor", "StickyLagAwareAssignor"])
def test_lag_aware_assignors_fetch_lags_themselves(
    fleet: Fleet, services: Services, kind: str
) -> None:
    """The owner of the most lag gets no other partition, or only the one with the least lag."""
    backlog(fleet, services)
    members = {name: join(fleet, name, kind, services) for name in ("a", "b")}
    # KAFKA-5337 evens counts out first; partition 3 has no commit, so all of it is lag.
    expected = [[0, 3], [1, 2]] if kind == "LagAwareAssignor" else [[0], [1, 2, 3]]
    eventually(lambda: shares(fleet, members) == expected, f"{expected}")


def test_lags_are_what_kafka_says(fleet: Fleet, services: Services) -> None:
    """Lag is end minus committed offset; without a commit, all records, or 0 with `latest`."""
    backlog(fleet, services)
    topic = fleet.topics[0]
    for reset, uncommitted in (("earliest", 25), ("latest", 0)):
        connection = {
            "bootstrap_servers": services.bootstrap_servers,
            "auto_offset_reset": reset,
        }
        expected = dict(enumerate((*LAGS[:3], uncommitted)))
        found = module_of(fleet).fetch_lags(fleet.group, connection, [topic, "absent"])
        assert found == {(topic, number): lag for number, lag in expected.items()}


def test_sticky_assignor_keeps_what_members_own(fleet: Fleet, services: Services) -> None:
    """A third member gets one partition; members that give up none keep exactly theirs."""
    members = {name: join(fleet, name, "StickyAssignor", services) for name in ("a", "b")}
    eventually(lambda: sorted(map(len, shares(fleet, members))) == [2, 2], "two each")
    before = {name: set(member.owned[fleet.topics[0]]) for name, member in members.items()}
    members["c"] = join(fleet, "c", "StickyAssignor", services)
    eventually(lambda: sorted(map(len, shares(fleet, members))) == [1, 1, 2], "one for c")
    for name, owned in before.items():
        assert set(members[name].owned[fleet.topics[0]]) <= owned


class JavaMember:
    """A Java consumer with Kafka's StickyAssignor."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process
        self.owned: list[int] = []
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.owned = [int(number) for number in line.split()]

    def tell(self, what: str) -> None:
        """Make the consumer `leave` its group, `join` it again, or `stop`."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{what}\n")
        self.process.stdin.flush()


@contextmanager
def java_member(fleet: Fleet, services: Services) -> Iterator[JavaMember]:
    """Run a Java consumer in the fleet's group."""
    command = [
        *(str(find_java()), *BRIEF, "-cp", os.pathsep.join(map(str, kafka_classpath()))),
        str(Path(__file__).with_name("StickyMember.java")),
        *(services.bootstrap_servers, fleet.group, fleet.topics[0]),
    ]
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        try:
            yield JavaMember(process)
        finally:
            process.communicate("stop\n", timeout=PATIENCE_S)


def test_java_sticky_assignor_and_ours_share_a_group(fleet: Fleet, services: Services) -> None:
    """Each reads the other's user data and keeps shares stable, whichever of them leads."""
    with java_member(fleet, services) as java:
        eventually(lambda: java.owned == [0, 1, 2, 3], "the Java consumer leads alone")
        ours = join(fleet, "ours", "StickyAssignor", services)
        eventually(
            lambda: (len(java.owned), len(owned(fleet, ours))) == (2, 2), "Java's assignor halves"
        )
        half, java_half = owned(fleet, ours), java.owned
        another = join(fleet, "another", "StickyAssignor", services)
        eventually(
            lambda: (
                len(owned(fleet, another)) == 1
                and sorted(java.owned + owned(fleet, ours) + owned(fleet, another)) == [0, 1, 2, 3]
            ),
            "the third one gets one",
        )
        assert set(owned(fleet, ours)) <= set(half)
        assert set(java.owned) <= set(java_half)
        # The leader leaves; then our assignor decides from claims with Java's generations.
        kept = owned(fleet, ours)
        java.tell("leave")
        eventually(
            lambda: sorted(owned(fleet, ours) + owned(fleet, another)) == [0, 1, 2, 3],
            "all is owned",
        )
        assert set(kept) <= set(owned(fleet, ours))
        java.tell("join")
        eventually(lambda: len(java.owned) == 1, "our assignor gives Java's consumer one")


def owned(fleet: Fleet, member: Member) -> list[int]:
    known: Owned = member.owned
    return known.get(fleet.topics[0], [])


def test_assignor_by_lag_needs_its_group(fleet: Fleet) -> None:
    """A missing or unknown setting is an error at construction, not at the first rebalance."""
    module = module_of(fleet)
    with pytest.raises(ConfigurationError, match="looks at lag"):
        module.LagAwareAssignor()
    with pytest.raises(ConfigurationError, match="no such option"):
        module.StickyAssignor(mvoes=1)
