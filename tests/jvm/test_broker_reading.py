"""What a broker does that may not read plans, or finds no topic of them: nobody loses anything."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)

from fairlead.sandbox.kafka import HOST, KafkaBroker, free_ports
from fairlead.sandbox.processes import wait_until
from tests.cluster import ClusterNode, new_cluster_id
from tests.jvm.remote import MEMBERS, PLANS, WAIT_S, Cluster, Group, shown
from tests.lengths import form

pytestmark = pytest.mark.kafka

READER = "reader"
FEW = {"a": [0, 1, 2], "b": [3, 4], "c": [5]}
_PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
#: Before it knows who is who, a broker looks for the topic that tells each second, else each 15 s.
SOON_S = 9.0


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[KafkaBroker]:
    """Return a broker whose assignor reads as a user of its own, who may do nothing yet."""
    port, controller, guarded = free_ports(3)
    listeners = f"PLAINTEXT://{HOST}:{port},SASL_PLAINTEXT://{HOST}:{guarded}"
    settings = {
        "listeners": f"{listeners},CONTROLLER://{HOST}:{controller}",
        "advertised.listeners": listeners,
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT,"
        "CONTROLLER:PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": f'{_PLAIN} user_{READER}="secret";',
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
        "controller.quorum.voters": f"1@{HOST}:{controller}",
        "fairlead.bootstrap.servers": f"{HOST}:{guarded}",
        "fairlead.client.security.protocol": "SASL_PLAINTEXT",
        "fairlead.client.sasl.mechanism": "PLAIN",
        "fairlead.client.sasl.jaas.config": f'{_PLAIN} username="{READER}" password="secret";',
        "group.consumer.heartbeat.interval.ms": "300",
        "group.consumer.min.heartbeat.interval.ms": "300",
    }
    broker = ClusterNode(
        tmp_path / "broker",
        (port, controller),
        new_cluster_id(),
        settings=settings,
        assignor=True,
    )
    broker.start()
    yield broker
    broker.kill()


def rights(kind: type[Any], operation: AclOperation) -> list[Any]:
    """Return a right on both topics, of the broker's assignor: bindings, or filters of them."""
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


def allow(cluster: Cluster, operation: AclOperation) -> None:
    """Let the broker's assignor do something with both topics."""
    for done in cluster.admin.create_acls(rights(AclBinding, operation)).values():
        done.result(WAIT_S)


def forbid(cluster: Cluster, operation: AclOperation) -> None:
    """Take that back."""
    for done in cluster.admin.delete_acls(rights(AclBindingFilter, operation)).values():
        assert len(done.result(WAIT_S)) == 1


def restart(broker: KafkaBroker, group: Group) -> None:
    """Let the broker come back knowing no plan; its groups are what they were."""
    broker.stop()
    broker.start()
    group.cluster = Cluster(broker)  # whose clients do not wait before they connect again


def keeps(group: Group, goes: str, comes: str) -> None:
    """Show that targets stay: who comes takes nothing but what has no owner."""
    stays = {name: set(share) for name, share in group.owned().items() if name != goes}
    group.revoked()
    group.leave(goes)
    group.join(comes)
    assert group.revoked() == {}
    assert all(set(group.owned()[name]) >= share for name, share in stays.items())


def test_members_topic_is_found_soon_after_it_was_made(
    broker: KafkaBroker, java_classpath: str, unique_name: str
) -> None:
    """It is made with the first plan of a broker, and nudges end after eleven seconds."""
    cluster = Cluster(broker)
    allow(cluster, AclOperation.READ)
    cluster.create(PLANS, 1, compact=True)
    assert wait_until(lambda: shown(broker, java_classpath)["Complete"], timeout_s=WAIT_S)
    cluster.create(MEMBERS, 1, compact=True)
    cluster.tell(unique_name, [])
    assert wait_until(lambda: shown(broker, java_classpath)["RecordsRead"] > 0, timeout_s=SOON_S)


@pytest.mark.parametrize("without", form(short=["a right"], long=["a right", "a topic"]))
def test_nobody_moves_where_plans_may_not_be_read_or_have_no_topic(
    broker: KafkaBroker, java_classpath: str, unique_name: str, without: str
) -> None:
    """After a restart; JMX says why. With the right it reads again, and plans are followed."""
    cluster = Cluster(broker)
    allow(cluster, AclOperation.DESCRIBE)
    allow(cluster, AclOperation.READ)
    for topic in (PLANS, MEMBERS):
        cluster.create(topic, 1, compact=True)
    with Group(cluster, unique_name, cluster.create(f"{unique_name}-t", 6), 6) as group:
        group.join("a", "b", "c")
        group.adopt(1, FEW)
        if without == "a right":
            forbid(cluster, AclOperation.READ)
        else:
            cluster.admin.delete_topics([PLANS])[PLANS].result(WAIT_S)

        restart(broker, group)
        keeps(group, goes="c", comes="d")
        found = shown(broker, java_classpath)
        assert (found["Complete"], found["Failures"], found["Outcomes"]["PLAN"]) == (False, 0, 0)
        assert found["Outcomes"]["KEPT_UNREAD"] >= 1
        if without == "a topic":
            assert "there is no topic fairlead.plans" in found["Problem"]
            return
        assert "TopicAuthorizationException" in found["Problem"]
        allow(group.cluster, AclOperation.READ)
        group.adopt(2, {"a": [0], "b": [1, 2], "d": [3, 4, 5]})
        assert shown(broker, java_classpath)["Problem"] == ""
