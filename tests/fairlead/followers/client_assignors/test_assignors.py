"""Real groups whose consumers use Fairlead's assignors without plans."""

from collections.abc import Mapping
from typing import Any

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.structs import OffsetAndMetadata

from fairlead.errors import ConfigurationError
from fairlead.followers.client_assignors import aiokafka as aiokafka_assignors
from fairlead.followers.client_assignors import kafka_python as kafka_python_assignors
from fairlead.followers.client_assignors.lags import lags_in_time
from fairlead.sandbox import Services
from tests.fairlead.followers.helpers import Fleet, Member
from tests.waiting import PATIENCE_S, eventually

pytestmark = pytest.mark.kafka

#: Lag of each partition. Partition 0 has as much lag as all other partitions together.
LAGS = (90, 40, 30, 20)


def module_of(fleet: Fleet) -> Any:
    """Return the module with the assignors for the fleet's client."""
    return aiokafka_assignors if fleet.client == "aiokafka" else kafka_python_assignors


def join(fleet: Fleet, name: str, kind: str, services: Services) -> Member:
    """Start a consumer of the fleet's client library that uses the assignor class `kind`."""
    connection = {"bootstrap_servers": services.bootstrap_servers, "auto_offset_reset": "earliest"}
    assignor = getattr(module_of(fleet), kind)(fleet.group, connection)
    return fleet.join_plain(
        name,
        partition_assignment_strategy=(assignor,),
        enable_auto_commit=False,
        auto_offset_reset="earliest",
    )


def backlog(fleet: Fleet, services: Services) -> None:
    """Produce 5 records more than `LAGS` to each partition; commit offset 5 in the first three."""
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
    fleet: Fleet, services: Services, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The owner of partition 0 (most lag) gets no other partition except 3 (least lag)."""
    monkeypatch.setattr(lags_in_time, "__defaults__", (PATIENCE_S,))
    backlog(fleet, services)
    members = {name: join(fleet, name, kind, services) for name in ("a", "b")}
    # The rule of KAFKA-5337 balances the number of partitions first, then lag.
    expected = [[0, 3], [1, 2]] if kind == "LagAwareAssignor" else [[0], [1, 2, 3]]
    eventually(lambda: shares(fleet, members) == expected, f"{expected}")


def test_lags_are_as_defined_by_kafka(fleet: Fleet, services: Services) -> None:
    """Lag is end minus committed offset; without a commit, all records, or 0 for `latest`."""
    backlog(fleet, services)
    topic = fleet.topics[0]
    for reset, uncommitted in (("earliest", 25), ("latest", 0)):
        connection = {"bootstrap_servers": services.bootstrap_servers, "auto_offset_reset": reset}
        expected = dict(enumerate((*LAGS[:3], uncommitted)))
        found = module_of(fleet).fetch_lags(fleet.group, connection, [topic, "absent"])
        assert found == {(topic, number): lag for number, lag in expected.items()}


def test_sticky_assignor_keeps_owned_partitions(fleet: Fleet, services: Services) -> None:
    """A third member gets one partition; the first two members get no new partitions."""
    members = {name: join(fleet, name, "StickyAssignor", services) for name in ("a", "b")}
    eventually(lambda: sorted(map(len, shares(fleet, members))) == [2, 2], "two each")
    before = {name: set(member.owned[fleet.topics[0]]) for name, member in members.items()}
    members["c"] = join(fleet, "c", "StickyAssignor", services)
    eventually(lambda: sorted(map(len, shares(fleet, members))) == [1, 1, 2], "one for c")
    for name, owned in before.items():
        assert set(members[name].owned[fleet.topics[0]]) <= owned


def test_assignor_by_lag_needs_its_group(fleet: Fleet) -> None:
    """Without a group, or with an unknown option, the assignor's constructor raises an error."""
    module = module_of(fleet)
    with pytest.raises(ConfigurationError, match="needs lags"):
        module.LagAwareAssignor()
    with pytest.raises(ConfigurationError, match="no such option"):
        module.StickyAssignor(mvoes=1)
