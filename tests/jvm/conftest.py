"""Fixtures of this folder's tests: one Java process with the jar's classes, and one broker."""

from collections.abc import Iterator

import pytest

from fairlead.sandbox.kafka import HOST, KafkaBroker, free_ports
from tests.cluster import ClusterNode, new_cluster_id
from tests.jvm.asking import Program, answering
from tests.jvm.remote import READER
from tests.started import limits
from tests.while_needed import while_needed

_PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"


@pytest.fixture(scope="session")
def checks(java_classpath: str) -> Iterator[Program]:
    """Return a running Checks.java."""
    with while_needed("java") as stack:
        with limits.shared():
            # A small heap, which must be enough for any input.
            command = ("-Xmx64m", "-cp", java_classpath, "fairlead.kafka.Checks")
            checks = stack.enter_context(answering(*command))
        yield checks


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    """Return a broker whose assignor reads plans as a separate user, which has no rights yet."""
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
        "group.consumer.max.session.timeout.ms": "600000",
        "group.consumer.session.timeout.ms": "600000",
    }
    folder, cluster_id = tmp_path_factory.mktemp("broker"), new_cluster_id()
    broker = ClusterNode(folder, (port, controller), cluster_id, settings=settings, assignor=True)
    with while_needed("java") as stack:
        stack.callback(broker.kill)
        broker.start()
        yield broker
