"""How a broker comes to read plans: by which rights, and how soon."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)

from fairlead.sandbox.kafka import HOST, ClusterNode, KafkaBroker, free_ports, new_cluster_id
from fairlead.sandbox.processes import wait_until
from tests.jvm.remote import MEMBERS, PLANS, WAIT_S, Cluster, shown

pytestmark = pytest.mark.kafka

READER = "reader"
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
    node = ClusterNode(new_cluster_id(), (port, controller), settings)
    broker = KafkaBroker(tmp_path / "broker", node=node, assignor=True)
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
