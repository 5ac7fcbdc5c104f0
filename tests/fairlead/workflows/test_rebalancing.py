"""Rebalance triggers do no harm if the broker follows no plans.

A rebalance trigger is a member that joins a group for a few seconds.
"""

import os
import signal
import subprocess
import sys
from typing import Any

import pytest

from fairlead.kafka.gateway import KafkaGateway
from fairlead.kafka.rebalance_trigger import RebalanceTrigger, TriggerConnection
from fairlead.settings import KafkaSettings, Settings
from fairlead.workflows.rebalancing import BrokerAdoption, BrokerPlan, trigger_rebalances
from tests.fairlead.kafka.members import BrokerAssigned, Owned, as_followers
from tests.fairlead.workflows.plans import make_plan
from tests.waiting import eventually

pytestmark = pytest.mark.kafka

STAYS_S = (1.5, 1.5)


@pytest.fixture
def cluster(settings: Settings, kafka_topic: Any) -> KafkaSettings:
    """Return the broker's settings, with a plan topic that only this test uses."""
    plans = kafka_topic(partitions=4, config={"cleanup.policy": "compact"})
    return settings.kafka.model_copy(update={"plan_topic": plans})


def goal(group: str, topic: str, partitions: int = 6) -> BrokerPlan:
    """Return a plan that gives all partitions to member `a`."""
    shares = {"a": {topic: list(range(partitions))}, "b": {}, "c": {}}
    plan = make_plan(shares, {topic: [1.0] * partitions}, group=group)
    return BrokerPlan(plan, {topic: partitions})


def join_members(members: BrokerAssigned, gateway: KafkaGateway, group: str, topic: str) -> Owned:
    """Let three members join, and wait until they share six partitions; return their shares.

    Afterwards, `members.revoked` is empty.
    """
    for name in "abc":
        members.join(group, name, [topic])

    def even() -> bool:
        shares = members.owned().values()
        return [len(share.get(topic, ())) for share in shares] == [2, 2, 2]

    eventually(even, "they share")
    eventually(lambda: gateway.broker_groups([group])[group].state == "Stable", "it settles")
    members.revoked.clear()
    return members.owned()


def rebalance(
    gateway: KafkaGateway, cluster: KafkaSettings, group: str, topic: str
) -> BrokerAdoption:
    """Trigger rebalances of a group without checking its assignor; return the result."""
    (done,) = trigger_rebalances(
        {group: goal(group, topic)}, as_followers(gateway), cluster, stays_s=STAYS_S
    )
    return done


@pytest.mark.parametrize("assignor", ["uniform"])
def test_trigger_moves_nothing_under_other_assignors(
    gateway: KafkaGateway, cluster: KafkaSettings, kafka_topic: Any, unique_name: str, assignor: str
) -> None:
    """If the group uses another assignor, a trigger moves no partition and is not in samples."""
    topic = kafka_topic(partitions=6)
    with BrokerAssigned(cluster, **{"group.remote.assignor": assignor}) as members:
        before = join_members(members, gateway, unique_name, topic)
        with (
            TriggerConnection(cluster) as connection,
            RebalanceTrigger(connection, unique_name, 1) as trigger,
        ):
            found = gateway.broker_groups([unique_name])[unique_name]
            assert any(m.is_trigger for m in found.members), "it is in when it has joined"

            def given() -> bool:
                assert trigger.heartbeat() == ""
                found = gateway.broker_groups([unique_name])[unique_name]
                return any(m.is_trigger and m.partitions for m in found.members)

            eventually(given, "the rebalance trigger is given its own topic")
            seen = gateway.live_group(unique_name)
        left = gateway.broker_groups([unique_name])[unique_name]
        assert not any(m.is_trigger for m in left.members), "it is out when it has left"
        done = rebalance(gateway, cluster, unique_name, topic)
        gone = gateway.broker_groups([unique_name])[unique_name]
        assert (members.owned(), members.revoked) == (before, [])
    assert {member.name for member in seen.members} == {"a", "b", "c"}
    assert seen.partition_counts == {topic: 6}
    assert (done.reached, done.triggers) == (False, 2)
    assert "did not follow the plan in time" in done.reason
    assert {member.client_id for member in gone.members} == {"a", "b", "c"}


def test_trigger_never_joins_a_classic_group(
    gateway: KafkaGateway, cluster: KafkaSettings, kafka_topic: Any, unique_name: str
) -> None:
    """A trigger joins no classic group: joining would convert the group's protocol."""
    topic = kafka_topic(partitions=6)
    with BrokerAssigned(cluster, **{"group.protocol": "classic"}) as members:
        members.join(unique_name, "a", [topic])
        members.settle(6)
        done = rebalance(gateway, cluster, unique_name, topic)
        assert (done.reached, done.triggers) == (False, 0)
        assert gateway.live_group(unique_name).group_type == "classic"
        assert members.revoked == []


def test_trigger_never_joins_an_absent_or_empty_group(
    gateway: KafkaGateway, cluster: KafkaSettings, kafka_topic: Any, unique_name: str
) -> None:
    """A trigger joins neither an absent group (joining would create the group) nor an empty one."""
    topic, empty = kafka_topic(partitions=6), f"{unique_name}-empty"
    with BrokerAssigned(cluster) as members:
        members.join(empty, "a", [topic])
        members.settle(6)
        members.leave("a")
    eventually(lambda: gateway.broker_groups([empty])[empty].state == "Empty", "it is empty")
    for group in (unique_name, empty):
        done = rebalance(gateway, cluster, group, topic)
        assert (done.reached, done.triggers) == (False, 0)
    assert gateway.live_group(empty).state == "Empty"
    assert unique_name not in gateway.list_groups()


def test_killed_trigger_moves_nothing(
    gateway: KafkaGateway, cluster: KafkaSettings, kafka_topic: Any, unique_name: str
) -> None:
    """If a trigger is killed, members keep their partitions, and at first no other trigger joins.

    Another trigger can join only after the killed trigger's session has ended.
    """
    topic = kafka_topic(partitions=6)
    with BrokerAssigned(cluster) as members:
        before = join_members(members, gateway, unique_name, topic)
        script = (
            "import sys, time\n"
            "from fairlead.kafka.rebalance_trigger import RebalanceTrigger, TriggerConnection\n"
            "from fairlead.settings import KafkaSettings\n"
            "settings = KafkaSettings(bootstrap_servers=sys.argv[1], plan_topic=sys.argv[2])\n"
            "with RebalanceTrigger(TriggerConnection(settings), sys.argv[3], 1) as one:\n"
            "    while True:\n"
            "        one.heartbeat(), time.sleep(0.05)\n"  # clock: the pause between two triggers
        )
        own = [cluster.bootstrap_servers, cluster.plan_topic, unique_name]
        with subprocess.Popen([sys.executable, "-c", script, *own]) as process:

            def there() -> bool:
                found = gateway.broker_groups([unique_name])[unique_name]
                return any(member.is_trigger for member in found.members)

            eventually(there, "the rebalance trigger has joined")
            os.kill(process.pid, signal.SIGKILL)
        done = rebalance(gateway, cluster, unique_name, topic)
        assert not done.reached
        assert (
            done.triggers == 0 or not there()
        )  # on a slow machine, the killed trigger's session may have ended
        assert (members.owned(), members.revoked) == (before, [])
