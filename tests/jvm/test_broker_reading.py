"""If a broker has no right to read plans, or there is no plan topic, members keep partitions."""

import time
from collections.abc import Callable
from contextlib import suppress

import pytest
from confluent_kafka.admin import AclOperation, NewPartitions

from fairlead.sandbox.kafka import KafkaBroker
from tests.jvm.asking import Program
from tests.jvm.remote import (
    MEMBERS,
    PLANS,
    Cluster,
    Group,
    MemberEndedError,
    allow,
    forbid,
    jmx_of,
)
from tests.lengths import form
from tests.waiting import PATIENCE_S, eventually

pytestmark = pytest.mark.kafka

FEW = {"a": [0, 1, 2], "b": [3, 4], "c": [5]}


def restart(broker: KafkaBroker, group: Group) -> None:
    """Restart the broker: its groups are kept, but its assignor forgets all plans.

    Static members are stopped during the restart: reconnection of clients is not tested here.
    """
    names = [*group.members]
    for name in names:
        group.leave(name)
    broker.stop()
    broker.start()
    group.cluster = Cluster(broker)  # new clients connect at once
    group.join(*names)


def keeps(group: Group, comes: str) -> None:
    """Let a member join; check that no other member loses a partition."""
    before = group.owned()
    group.revoked()
    group.join(comes)
    assert group.revoked() == {}
    assert group.owned() == before | {comes: []}


def test_new_members_topic_is_found_within_seconds(
    broker: KafkaBroker, checks: Program, unique_name: str
) -> None:
    """When the members topic is created, brokers read it within seconds.

    The members topic is created with the first plan, and a rebalance trigger ends after 11 s.
    Therefore brokers check for missing topics every second. For other changes, such as a new
    partition of the plan topic, they check only every 15 s.
    """
    cluster = Cluster(broker)
    assert MEMBERS not in cluster.admin.list_topics().topics  # this test must be the broker's first
    allow(cluster, AclOperation.READ)
    cluster.create(PLANS, 1, compact=True)
    eventually(lambda: jmx_of(broker, checks)["Complete"], "it has read the plans")

    def seconds_until_more_is_read(change: Callable[[], object]) -> float:
        read = jmx_of(broker, checks)["RecordsRead"]
        change()
        began = time.monotonic()  # clock: ratio
        eventually(lambda: jmx_of(broker, checks)["RecordsRead"] > read, "records are read")
        return time.monotonic() - began  # clock: ratio

    def create_members_topic() -> None:
        cluster.create(MEMBERS, 1, compact=True)
        cluster.tell(unique_name, [])

    def grow_plans_topic() -> None:
        cluster.admin.create_partitions([NewPartitions(PLANS, 2)])[PLANS].result(PATIENCE_S)

    found_s = seconds_until_more_is_read(create_members_topic)
    grown_s = seconds_until_more_is_read(grow_plans_topic)
    assert found_s < grown_s  # clock: a ratio


@pytest.mark.parametrize("without", form(short=["a right"], long=["a right", "a topic"]))
def test_nothing_moves_without_rights_or_topic(
    broker: KafkaBroker, checks: Program, unique_name: str, without: str
) -> None:
    """While a broker cannot read plans, members keep partitions, even if the broker restarts.

    After the right to read is granted again, members follow a new plan.
    """
    allow(Cluster(broker), AclOperation.DESCRIBE)
    for attempt in range(3):
        cluster = Cluster(broker)
        allow(cluster, AclOperation.READ)
        for topic in {PLANS, MEMBERS} - cluster.admin.list_topics(timeout=PATIENCE_S).topics.keys():
            cluster.create(topic, 1, compact=True)
        name = f"{unique_name}-{attempt}"
        topic = cluster.create(f"{name}-t", 6)
        with suppress(MemberEndedError), Group(cluster, name, topic, 6, static=True) as group:
            nothing_moves(broker, checks, group, without)
            return
    pytest.fail("librdkafka ended a static member in each attempt")


def nothing_moves(broker: KafkaBroker, checks: Program, group: Group, without: str) -> None:
    """Check that no partition moves while a restarted broker cannot read plans.

    If only the right was missing, grant it again, and check that members follow a new plan.
    """
    group.join("a", "b", "c")
    group.adopt(1, FEW)
    if without == "a right":
        forbid(group.cluster, AclOperation.READ)
    else:
        group.cluster.admin.delete_topics([PLANS])[PLANS].result(PATIENCE_S)

    restart(broker, group)
    assert group.owned() == FEW
    keeps(group, comes="d")
    why = "TopicAuthorizationException" if without == "a right" else "there is no topic"
    # The reader starts before its broker accepts connections, and retries every few seconds.
    eventually(lambda: why in jmx_of(broker, checks)["Problem"], why)
    found = jmx_of(broker, checks)
    assert (found["Complete"], found["Failures"], found["Outcomes"]["PLAN"]) == (False, 0, 0)
    assert found["Outcomes"]["KEPT_UNREAD"] >= 1
    if without == "a topic":
        return
    allow(group.cluster, AclOperation.READ)
    # First wait until the broker has read the plans, then trigger a rebalance. In an earlier one,
    # the consumer that triggers it might get partitions of members whose sessions have ended.
    eventually(lambda: jmx_of(broker, checks)["Complete"], "the broker has read the plans")
    group.adopt(2, {"a": [0], "b": [1, 2], "c": [], "d": [3, 4, 5]})
    assert jmx_of(broker, checks)["Problem"] == ""
