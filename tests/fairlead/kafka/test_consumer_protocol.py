"""Groups of the consumer protocol (KIP-848), on a real broker."""

from typing import Any

import pytest

from fairlead.domain.samples import ownership
from fairlead.kafka.gateway import KafkaGateway
from fairlead.settings import Settings
from tests.fairlead.kafka.members import BrokerAssigned
from tests.fixtures.consumer_groups import Produce
from tests.waiting import eventually

pytestmark = pytest.mark.kafka


def test_a_group_of_the_consumer_protocol_is_described_like_a_classic_one(
    settings: Settings, gateway: KafkaGateway, kafka_topic: Any, produce: Produce, unique_name: str
) -> None:
    """Names, subscriptions, owners and offsets are complete, even if members share a client id.

    One member has an instance id, one a unique client id, two share a client id; a fifth reads
    another topic by a pattern. A group whose last member has left is empty, without an error.
    """
    first, second = (kafka_topic(f"{unique_name}-{n}", partitions=5) for n in "ab")
    produce(first, [3, 1, 0, 0, 0])
    with BrokerAssigned(settings.kafka) as members:
        members.join(unique_name, "s", [first], group_instance_id="static")
        members.join(unique_name, "lone", [first])
        members.join(unique_name, "twin-1", [first], client_id="twin")
        members.join(unique_name, "twin-2", [first], client_id="twin", client_rack="r1")
        members.join(unique_name, "by-pattern", [f"^{unique_name}-b.*"])
        members.settle(10)
        members.join(left := f"{unique_name}-left", "last", [second])
        members.settle(15)
        members.leave("last")
        eventually(lambda: all(members.owned().values()), "all own partitions")
        eventually(
            lambda: gateway.broker_groups([unique_name])[unique_name].state == "Stable",
            "it settles",
        )

        assert unique_name in gateway.list_groups()
        live = gateway.live_group(unique_name)
        (row,) = gateway.snapshot([unique_name]).samples.to_pylist()
        described = gateway.broker_groups([unique_name])[unique_name]
        owned = members.owned()
    eventually(
        lambda: gateway.broker_groups([left])[left].state == "Empty", "the last one has left"
    )
    empty = gateway.live_group(left)

    assert (live.state, live.protocol, live.group_type) == ("Stable", "uniform", "consumer")
    named = {member.name: member for member in live.members}
    twins = sorted(named.keys() - {"static", "lone", "by-pattern"})
    assert {named[twin].client_id for twin in twins} == {"twin"}
    assert [named[twin].member_id for twin in twins] == twins
    assert named["by-pattern"].topics == (second,)
    assert all(named[twin].topics == (first,) for twin in ("static", "lone", *twins))
    for name, instance in (("s", "static"), ("lone", "lone"), ("by-pattern", "by-pattern")):
        assert owned[name] == {t: list(ps) for t, ps in named[instance].partitions.items()}
    assert live.partition_counts == {first: 5, second: 5}
    assert (row["error"], row["group_type"], row["protocol"]) == (None, "consumer", "uniform")
    assert (row["topics"], sum(row["end"])) == ([first, second], 4)
    assert dict(zip(row["topics"], row["topic_ids"], strict=True)) == described.topic_ids
    shares = {member.name: member.partitions for member in live.members}
    assert {
        name: {t: tuple(ps) for t, ps in mine.items()} for name, mine in ownership(row).items()
    } == shares
    assert {member.rack for member in described.members} == {None, "r1"}
    assert {member.client_id for member in live.members if member.rack == "r1"} == {"twin"}
    assert set(row["member_racks"]) == {None, "r1"}
    assert set(described.topic_ids) == {first, second}
    assert (empty.state, empty.members) == ("Empty", ())
    assert all(
        member.partitions == member.target and not member.classic for member in described.members
    )
