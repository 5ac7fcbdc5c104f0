"""A Kafka broker in a state directory; the broker is its own KRaft controller.

Belongs here: the broker's configuration and process, and whether the broker answers. Belongs
elsewhere: topics or groups (`fairlead.kafka`), and downloading its jars (`jars`).
"""

import os
import re
import shutil
import socket
import subprocess
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from signal import Signals
from typing import Final

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from fairlead.errors import SandboxError
from fairlead.sandbox import processes
from fairlead.sandbox.jars import kafka_classpath
from fairlead.sandbox.java import BRIEF, find_java
from fairlead.sandbox.plugin import plugin_if_any

PORT_ATTEMPTS: Final = 5
HOST: Final = "127.0.0.1"
# The JVM need not verify the classes, because the jars were checked when they were downloaded.
_TRUSTING: Final = ("-XX:+UnlockDiagnosticVMOptions", "-XX:-BytecodeVerificationRemote")
# The heap is small, but enough for a few megabytes per second.
JVM_OPTIONS: Final = (
    *(*BRIEF, *_TRUSTING, "-Xms128m", "-Xmx512m"),
    "-Djava.awt.headless=true",
)
LOGGING_OPTIONS: Final = (
    "-Dorg.slf4j.simpleLogger.showDateTime=true",
    "-Dorg.slf4j.simpleLogger.dateTimeFormat=yyyy-MM-dd HH:mm:ss.SSS",
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=info",
)
_PROPERTIES: Final = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@{host}:{controller_port}
controller.listener.names=CONTROLLER
metadata.max.idle.interval.ms=5000
listeners=PLAINTEXT://{host}:{port},CONTROLLER://{host}:{controller_port}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs=data
auto.create.topics.enable=false
offsets.topic.replication.factor=1
offsets.topic.num.partitions=4
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=4
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
broker.heartbeat.interval.ms=1000
broker.session.timeout.ms=30000
initial.broker.registration.timeout.ms=600000
group.initial.rebalance.delay.ms=100
group.min.session.timeout.ms=500
group.consumer.heartbeat.interval.ms=500
group.consumer.min.heartbeat.interval.ms=500
log.cleaner.dedupe.buffer.size=16777216
num.network.threads=2
num.io.threads=4
"""
#: Only groups that name the assignor `fairlead` follow plans; `uniform` remains the default.
ASSIGNORS: Final = {
    "group.consumer.assignors": "uniform,range,fairlead.kafka.PlanGroupAssignor",
}
_LISTENERS: Final = re.compile(r"^listeners=.+:(\d+),.+:(\d+)$", re.MULTILINE)


class KafkaBroker(processes.Service):
    """The broker of a state directory.

    Parameters
    ----------
    state_dir
        Directory for the broker's data, configuration and log; created if missing.
    progress
        Called with a line for the user when a step takes long.
    assignor
        Whether to configure the server-side assignor `fairlead`, so that groups of the consumer
        protocol can follow plans. If the assignor's sources or a Java compiler are missing, the
        broker runs without the assignor.
    settings
        More server properties, which override the sandbox's own.
    """

    def __init__(
        self,
        state_dir: Path,
        *,
        progress: Callable[[str], None] = lambda _: None,
        assignor: bool = False,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self.state_dir = state_dir.resolve()
        self._assignor = assignor
        self._plugin: Path | None = None
        self._settings = dict(settings or {})
        self._properties = self.state_dir / "server.properties"
        self._cluster_id = self.state_dir / "cluster.id"
        self._progress = progress
        mark = f"-Dfairlead.sandbox={self.state_dir}"
        super().__init__("Kafka", self.state_dir / "kafka.log", mark)

    @property
    def bootstrap_servers(self) -> str:
        """Addresses for clients; raises SandboxError before the first start."""
        if (ports := self._ports()) is None:
            raise SandboxError(f"No Kafka was ever started in {self.state_dir}")
        return f"{HOST}:{ports[0]}"

    def launch(self) -> None:
        """Start the broker unless it runs; do not wait until it answers."""
        if self.process():
            return
        java, jars = find_java(), kafka_classpath(self._progress)
        self._plugin = plugin_if_any() if self._assignor else None
        classpath = os.pathsep.join(map(str, [*jars, self._plugin] if self._plugin else jars))
        self.state_dir.mkdir(parents=True, exist_ok=True)
        # Write the properties at each start, since a new version may change them. Keep the ports.
        self._write_properties(self._ports() or free_ports(2))
        if not self._cluster_id.exists():
            self._format(java, classpath)
        self.rotate_log()
        # Start in the state directory, so that the properties need only relative paths: the path of
        # this directory may have characters, such as commas, that the properties do not allow.
        processes.spawn(
            [
                *(str(java), *JVM_OPTIONS, *LOGGING_OPTIONS, self._mark),
                *("-cp", classpath, "kafka.Kafka", self._properties.name),
            ],
            log=self.log,
            cwd=self.state_dir,
        )

    def wait_ready(self) -> None:
        """Wait until the launched broker answers; restart it on other ports if a port is taken.

        Raises
        ------
        SandboxError
            The broker ends or does not answer in time; the message has the end of its log.
        """
        for _ in range(PORT_ATTEMPTS):
            admin = AdminClient({"bootstrap.servers": self.bootstrap_servers, "log_level": 0})
            if self.answers_or_ends(partial(self._serves, admin)):
                return
            if "Address already in use" not in self.log.read_text(errors="replace"):
                break
            # Another program has taken a port since the ports were chosen or the broker last ran.
            self._write_properties(free_ports(2))
            self.launch()
        raise self.failure()

    def start(self) -> None:
        """Launch the broker unless it runs, and wait until it answers."""
        self.launch()
        self.wait_ready()

    def stop(self) -> None:
        """Shut the broker down properly and keep its data."""
        self.end(Signals.SIGTERM)

    def _new_cluster_id(self) -> str:
        """Return a UUID in Kafka's format. It begins with "k": with "-", it would be an option."""
        return "k" + urlsafe_b64encode(uuid.uuid4().bytes).decode()[1:22]

    def _ports(self) -> list[int] | None:
        """Return the ports of the broker and its controller; None before the first start."""
        if not self._properties.exists():
            return None
        listeners = _LISTENERS.search(self._properties.read_text())
        return [int(port) for port in listeners.groups()] if listeners else None

    def _write_properties(self, ports: list[int]) -> None:
        port, controller_port = ports
        lines = [_PROPERTIES.format(host=HOST, port=port, controller_port=controller_port)]
        settings = {**(ASSIGNORS if self._plugin else {}), **self._settings}
        lines += [f"{name}={value}\n" for name, value in settings.items()]
        self._properties.write_text("".join(lines))

    def _format(self, java: Path, classpath: str) -> None:
        shutil.rmtree(self.state_dir / "data", ignore_errors=True)  # left by an interrupted format
        cluster_id = self._new_cluster_id()
        result = subprocess.run(
            [
                *(str(java), *BRIEF, *_TRUSTING, "-cp", classpath),
                *("kafka.tools.StorageTool", "format", "--cluster-id", cluster_id),
                *("--config", self._properties.name),
            ],
            cwd=self.state_dir,
            capture_output=True,
            text=True,
            check=False,
        )
        if result.returncode:
            raise SandboxError(f"Kafka's storage tool failed: {result.stderr.strip()[-500:]}")
        self._cluster_id.write_text(cluster_id)

    def _serves(self, admin: AdminClient) -> bool:
        """Whether this broker answers; False if a broker of another cluster has taken the port."""
        if not listens(self.bootstrap_servers):
            return False
        try:
            metadata = admin.list_topics(timeout=2)
        except KafkaException:
            return False
        return bool(metadata.brokers) and metadata.cluster_id == self._cluster_id.read_text()


def listens(address: str) -> bool:
    """Whether a program listens at an address, HOST:PORT."""
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host, int(port)), timeout=1):
            return True
    except OSError:
        return False


def free_ports(count: int) -> list[int]:
    """Return different ports that are free now."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for listener in sockets:
            listener.bind((HOST, 0))
        return [listener.getsockname()[1] for listener in sockets]
