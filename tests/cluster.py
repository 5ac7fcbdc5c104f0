"""A cluster of three Kafka brokers, for tests for which the sandbox's single broker is not enough.

Belongs here: the brokers' addresses, and starting and stopping them together. Belongs elsewhere:
the process of one broker (`fairlead.sandbox.kafka`).
"""

import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, Self

from pydantic import SecretStr

from fairlead.sandbox.kafka import HOST, KafkaBroker, free_ports
from fairlead.wire.partitions import kafka_uuid

NODES: Final = 3
#: Properties for librdkafka clients whose broker a test stops: log no lost connections.
QUIET: Final = {"log_level": 0}
#: `QUIET` in the form of the planner's settings.
QUIET_PROPERTIES: Final = {name: SecretStr(str(value)) for name, value in QUIET.items()}


def new_cluster_id() -> str:
    """Return a UUID in Kafka's form. It has no leading dash, which would look like an option."""
    return "k" + kafka_uuid(uuid.uuid4().bytes)[1:22]


class ClusterNode(KafkaBroker):
    """A broker whose ports and cluster id are given.

    Parameters
    ----------
    state_dir, assignor, settings
        As for `KafkaBroker`.
    ports
        Ports of the broker and of its controller.
    cluster_id
        Id of the cluster.
    """

    def __init__(
        self,
        state_dir: Path,
        ports: tuple[int, int],
        cluster_id: str,
        *,
        settings: Mapping[str, str],
        assignor: bool = False,
    ) -> None:
        super().__init__(state_dir, assignor=assignor, settings=settings)
        self._own = ports
        self._cluster = cluster_id

    def _ports(self) -> list[int]:
        return list(self._own)

    def _new_cluster_id(self) -> str:
        return self._cluster


class KafkaCluster:
    """Three brokers that are also controllers; each broker has a replica of each partition.

    This context manager starts and stops the brokers. `min.insync.replicas` is 2.

    Parameters
    ----------
    state_dir
        New folder for the brokers' data, with a directory for each broker.
    settings
        Additional server properties of each broker, in order; by default none.
    assignor
        Whether the brokers have the assignor `fairlead`, for groups of the consumer protocol.
    listeners
        Names, in capitals, of additional listeners of every broker. Brokers count the sent bytes of
        each listener separately. `servers_of` has their addresses.
    """

    def __init__(
        self,
        state_dir: Path,
        *,
        settings: Sequence[Mapping[str, str]] = (),
        assignor: bool = False,
        listeners: Sequence[str] = (),
    ) -> None:
        ports = free_ports((2 + len(listeners)) * NODES)
        pairs = [(ports.pop(), ports.pop()) for _ in range(NODES)]
        further = [{name: ports.pop() for name in listeners} for _ in range(NODES)]
        voters = ",".join(f"{n}@{HOST}:{pair[1]}" for n, pair in enumerate(pairs, start=1))
        cluster_id = new_cluster_id()
        common = {
            "controller.quorum.voters": voters,
            "default.replication.factor": "3",
            "min.insync.replicas": "2",
            "broker.session.timeout.ms": "4000",
            "offsets.topic.replication.factor": "3",
            "transaction.state.log.replication.factor": "3",
            "transaction.state.log.min.isr": "2",
        }
        own = dict(enumerate(settings, start=1))
        self.brokers = {
            number: ClusterNode(
                state_dir / str(number),
                pair,
                cluster_id,
                assignor=assignor,
                settings={
                    **common,
                    "node.id": str(number),
                    **_listening(pair, more),
                    **own.get(number, {}),
                },
            )
            for number, (pair, more) in enumerate(zip(pairs, further, strict=True), start=1)
        }
        self.servers_of = {
            name: ",".join(f"{HOST}:{more[name]}" for more in further) for name in listeners
        }
        self.bootstrap_servers = ",".join(f"{HOST}:{port}" for port, _ in pairs)

    def __enter__(self) -> Self:
        try:
            for broker in self.brokers.values():
                broker.launch()
            for broker in self.brokers.values():
                broker.wait_ready()
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._stop()

    def _stop(self) -> None:
        for broker in self.brokers.values():
            broker.kill()


def _listening(pair: tuple[int, int], further: Mapping[str, int]) -> dict[str, str]:
    """Return the server properties that give a broker the additional listeners in `further`."""
    if not further:
        return {}
    own = {"PLAINTEXT": pair[0], **further}
    listeners_ = ",".join(f"{name}://{HOST}:{port}" for name, port in own.items())
    return {
        "listeners": f"{listeners_},CONTROLLER://{HOST}:{pair[1]}",
        "advertised.listeners": listeners_,
        "listener.security.protocol.map": ",".join(
            f"{name}:PLAINTEXT" for name in (*own, "CONTROLLER")
        ),
    }
