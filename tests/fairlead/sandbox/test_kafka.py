"""The embedded broker: starting, restarting, and errors."""

import shutil
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from fairlead.errors import SandboxError
from fairlead.sandbox.kafka import KafkaBroker

pytestmark = pytest.mark.kafka


@pytest.fixture
def broker(own_services: Path) -> KafkaBroker:
    """Return a broker that tests may end; a previous test may have left it running."""
    return KafkaBroker(own_services / "kafka", assignor=True)


@pytest.fixture(scope="module", autouse=True)
def _ends(own_services: Path) -> Iterator[None]:
    """Stop the broker after the last test."""
    yield
    KafkaBroker(own_services / "kafka").stop()


def _port(broker: KafkaBroker) -> int:
    return int(broker.bootstrap_servers.rpartition(":")[2])


def test_unfinished_format_is_created_again(broker: KafkaBroker) -> None:
    """If formatting was killed, the next start formats the data directory again."""
    broker.stop()
    (broker.state_dir / "cluster.id").unlink(missing_ok=True)
    data = broker.state_dir / "data"
    shutil.rmtree(data, ignore_errors=True)
    data.mkdir(parents=True)
    (data / "meta.properties").write_text("half of a li")
    broker.start()
    assert broker.process() is not None


def test_taken_port_is_replaced(broker: KafkaBroker) -> None:
    """If another program has taken the port since the last run, the broker chooses another."""
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
    """If the data directory belongs to another node, the error has the end of the broker's log."""
    broker.start()
    broker.stop()
    meta = broker.state_dir / "data" / "meta.properties"
    theirs = meta.read_text()
    meta.write_text(theirs.replace("node.id=1", "node.id=2"))
    message = r"ended while it was starting(.|\n)*Stored node id 2"
    try:
        with pytest.raises(SandboxError, match=message):
            broker.start()
        assert broker.process() is None
    finally:
        meta.write_text(theirs)
