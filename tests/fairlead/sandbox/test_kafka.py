"""The embedded broker: starting, crashing, restarting, and what it says when it cannot."""

import shutil
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from fairlead.errors import SandboxError
from fairlead.sandbox.kafka import KafkaBroker
from tests.cluster import QUIET
from tests.topics import create_topics
from tests.waiting import PATIENCE_S

pytestmark = pytest.mark.kafka


@pytest.fixture
def broker(own_services: Path) -> KafkaBroker:
    """Return a broker that tests may end; the one before may have left it running."""
    return KafkaBroker(own_services / "kafka", assignor=True)


@pytest.fixture(scope="module", autouse=True)
def _ends(own_services: Path) -> Iterator[None]:
    """End the broker after the last test."""
    yield
    KafkaBroker(own_services / "kafka").stop()


def _port(broker: KafkaBroker) -> int:
    return int(broker.bootstrap_servers.rpartition(":")[2])


def test_unfinished_format_is_made_anew(broker: KafkaBroker) -> None:
    """A format that was killed half-way leaves data that the next start does not trust."""
    broker.stop()
    (broker.state_dir / "cluster.id").unlink(missing_ok=True)
    data = broker.state_dir / "data"
    shutil.rmtree(data, ignore_errors=True)
    data.mkdir(parents=True)
    (data / "meta.properties").write_text("half of a li")
    broker.start()
    assert broker.process() is not None


def test_crash_loses_no_acknowledged_record(broker: KafkaBroker, unique_name: str) -> None:
    """After SIGKILL and a restart the broker has its port, its topics and its records."""
    broker.start()
    before = broker.bootstrap_servers
    admin = AdminClient({"bootstrap.servers": before, **QUIET})
    create_topics(admin, NewTopic(unique_name, 1))
    producer = Producer({"bootstrap.servers": before, "acks": "all", **QUIET})
    producer.produce(unique_name, b"value")
    assert producer.flush(PATIENCE_S) == 0
    del producer
    broker.kill()
    assert broker.process() is None
    broker.start()
    assert broker.bootstrap_servers == before
    consumer = Consumer({"bootstrap.servers": before, "group.id": "any", **QUIET})
    try:
        assert consumer.get_watermark_offsets(
            TopicPartition(unique_name, 0), timeout=PATIENCE_S
        ) == (0, 1)
    finally:
        consumer.close()


def test_taken_port_is_replaced(broker: KafkaBroker) -> None:
    """When somebody has taken the port since the last run, the broker finds another."""
    broker.start()
    port = _port(broker)
    broker.stop()
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind(("127.0.0.1", port))
        other.listen()
        broker.start()
    assert _port(broker) != port


def test_broker_that_ends_early_is_reported_with_its_log(broker: KafkaBroker) -> None:
    """Data of another node: the broker refuses them, and the message says what it said."""
    broker.start()
    broker.stop()
    meta = broker.state_dir / "data" / "meta.properties"
    theirs = meta.read_text()
    meta.write_text(theirs.replace("node.id=1", "node.id=2"))
    said = r"ended while it was starting(.|\n)*Stored node id 2"
    try:
        with pytest.raises(SandboxError, match=said):
            broker.start()
        assert broker.process() is None
    finally:
        meta.write_text(theirs)
