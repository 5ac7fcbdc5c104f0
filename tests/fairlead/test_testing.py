"""`fairlead.testing`, the test helpers for applications: groups in memory and on a broker."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from functools import partial

import pytest

from fairlead.errors import GroupError, InvalidPlanError
from fairlead.followers.core.follower import Follower, FollowOptions
from fairlead.sandbox import Services
from fairlead.testing import MemoryGroup, MemoryPlanTopic, plan_of
from fairlead.wire.signing import Signer
from tests.fairlead.followers.helpers import Fleet, Member
from tests.waiting import eventually

SHARES = {"a": {"t": [2]}, "b": {"t": [0, 1]}}
BY_RANGE = {"a": {"t": [0, 1]}, "b": {"t": [2]}}


def group_of(*members: str, plans: MemoryPlanTopic, partitions: int = 3) -> MemoryGroup:
    """Return a group in memory with these members, which reads a topic `t`."""
    group = MemoryGroup("g", {"t": partitions}, plans)
    for name in members:
        group.join(name)
    return group


def test_invalid_plan_is_refused_when_it_is_made() -> None:
    """`plan_of` refuses a partition with two owners, and a partition that does not exist."""
    with pytest.raises(InvalidPlanError, match="more than one owner"):
        plan_of("g", {"a": {"t": [0]}, "b": {"t": [0]}})
    with pytest.raises(InvalidPlanError):
        plan_of("g", {"a": {"t": [3]}}, partition_counts={"t": 3})


def test_newer_plan_causes_one_request() -> None:
    """Each member requests one rebalance for a newer plan, and none for an older or equal plan."""
    plans = MemoryPlanTopic()
    group = group_of("a", "b", plans=plans)
    assert group.rebalance() == BY_RANGE
    assert group.read() == []
    plans.publish(plan_of("g", SHARES, version=2))
    assert group.read() == ["a", "b"]
    assert group.rebalance() == SHARES
    plans.publish(plan_of("g", SHARES, version=2))
    plans.publish(plan_of("g", BY_RANGE, version=1))
    assert group.read() == []
    assert group.rebalance() == SHARES


def test_unsigned_plans_are_not_followed_with_keys() -> None:
    """If public keys are set, members in memory follow only signed plans, as on a broker."""
    signer = Signer.new("k")
    plans = MemoryPlanTopic()
    options = FollowOptions(public_keys=signer.public_text(), rejoin_jitter_s=0.0)
    group = MemoryGroup("g", {"t": 3}, plans, options)
    group.join("a")
    group.join("b")
    plans.publish(plan_of("g", SHARES, version=1))
    assert group.read() == []
    assert group.rebalance() == BY_RANGE
    plans.publish(plan_of("g", SHARES, version=2), signer=signer)
    group.read()
    assert group.rebalance() == SHARES


def test_errors_have_the_name_of_the_member() -> None:
    """If an unknown member leaves, or a member joins twice, the error names the member."""
    group = group_of("a", plans=MemoryPlanTopic())
    with pytest.raises(GroupError, match="no member b"):
        group.leave("b")
    with pytest.raises(GroupError, match="a member a already"):
        group.join("a")
    assert MemoryGroup("g", {}, MemoryPlanTopic()).rebalance() == {}


def test_follower_reads_plans_from_memory() -> None:
    """A `Follower` can read plans from memory, so custom adapters can be tested without Kafka."""
    plans = MemoryPlanTopic()
    plans.publish(plan_of("g", SHARES, version=9))
    follower = Follower("g", FollowOptions(), plans.open)
    try:
        eventually(lambda: follower.status().latest_version == 9, "the plan is read")
    finally:
        follower.close()


@pytest.mark.kafka
def test_group_on_a_broker_ends_with_the_same_shares(
    services: Services, unique_name: str, kafka_topic: Callable[..., str]
) -> None:
    """Two plan followers with kafka-python own the same partitions as the members in memory."""
    topic = kafka_topic(partitions=5)
    plan = plan_of(unique_name, {"a": {topic: [4]}, "gone": {topic: [0, 1, 2, 3]}})
    memory = MemoryPlanTopic()
    memory.publish(plan)
    group = MemoryGroup(unique_name, {topic: 5}, memory)
    group.join("a")
    group.join("c")
    assert group.rebalance() == {"a": {topic: [4]}, "c": {topic: [0, 1, 2, 3]}}
    with closing(Fleet(services, unique_name, kafka_topic(), [topic])) as fleet:
        fleet.publish(plan)
        members = {name: fleet.join(name) for name in ("a", "c")}
        for name, member in members.items():
            own = group.status(name).owned
            eventually(partial(owns, member, own), f"{name} owns the same")


def owns(member: Member, share: Mapping[str, Sequence[int]]) -> bool:
    """Return whether a real consumer owns exactly these partitions."""
    return member.status().owned == share
