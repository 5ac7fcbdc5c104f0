"""The example consumers, run in a separate environment with the wheel, as users do.

The environment has only the wheel with one client's extra, so that an import of the planner's
packages would fail.
"""

import json
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, NamedTuple

import pytest
from kafka import KafkaProducer

from fairlead.errors import GroupError
from fairlead.kafka.gateway import KafkaGateway
from fairlead.kafka.plan_topic import PlanTopic
from fairlead.settings import Settings
from tests.fairlead.followers.helpers import Owned, make_plan
from tests.interrupts import accepting_ctrl_c
from tests.packaging import ROOT, build, new_environment
from tests.programs import ended
from tests.records import publish, unsigned
from tests.waiting import PATIENCE_S, eventually

#: Maximum time to import plan followers, as a multiple of the time to import numpy.
#: Measured: plan followers 0.5, pandas 4.
SHARE = 3
PROBE = """
import importlib, importlib.util, json, sys, time
client, *modules = sys.argv[1:]
importlib.import_module(client)
started = time.process_time()  # clock: ratio to numpy
importlib.import_module("numpy")
numpy = time.process_time() - started  # clock: ratio to numpy
for module in modules:
    importlib.import_module(module)
seconds = time.process_time() - started - numpy  # clock: ratio to numpy
planner = ["dagster", "pyspark", "psycopg", "sqlalchemy", "ortools", "pandas", "pydantic"]
clients = {"kafka", "aiokafka", "confluent_kafka"} - {client}
print(json.dumps({
    "share": seconds / numpy,
    "installed": [name for name in (*planner, *clients) if importlib.util.find_spec(name)],
    "where": importlib.import_module("fairlead").__file__,
}))
"""


@dataclass(frozen=True)
class Client:
    """A client library: its extra, its package, our modules for it, and the example's file."""

    extra: str
    package: str
    modules: tuple[str, ...]
    example: str


CLIENTS = (
    Client(
        "kafka-python",
        "kafka",
        ("kafka_python", "client_assignors.kafka_python", "cleanup.kafka_python"),
        "kafka_python_consumer.py",
    ),
    Client(
        "aiokafka",
        "aiokafka",
        ("aiokafka", "client_assignors.aiokafka", "cleanup.aiokafka"),
        "aiokafka_consumer.py",
    ),
    Client("confluent", "confluent_kafka", ("confluent",), "confluent_kafka_consumer.py"),
)


class Output(NamedTuple):
    """The standard output and the log (standard error) of an example."""

    lines: IO[str]
    log: IO[str]


class Environment(NamedTuple):
    """The interpreter of an environment with the wheel and one client, and that client."""

    python: Path
    client: Client


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel and return its path."""
    return build("wheel", tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="module", params=CLIENTS, ids=lambda client: client.extra)
def environment(
    request: pytest.FixtureRequest, wheel: Path, tmp_path_factory: pytest.TempPathFactory
) -> Environment:
    """Install the wheel with the extra of a client into a new virtual environment."""
    client: Client = request.param
    python = new_environment(tmp_path_factory.mktemp(client.extra), wheel, client.extra)
    return Environment(python, client)


@pytest.mark.long
def test_wheel_with_one_extra_is_all_a_consumer_needs(
    tmp_path: Path, environment: Environment
) -> None:
    """Plan followers need none of the planner's packages, and their import is quick."""
    python, client = environment
    names = [f"fairlead.followers.{name}" for name in client.modules]
    # Measure five times: the first import also compiles, and other programs may slow an import.
    for _ in range(5):
        found = json.loads(ended(python, "-c", PROBE, client.package, *names, cwd=tmp_path).stdout)
        assert found["installed"] == []
        assert Path(found["where"]).is_relative_to(python.parents[1])
        if found["share"] < SHARE:
            break
    assert found["share"] < SHARE


@pytest.mark.kafka
def test_example_reads_its_planned_share(
    environment: Environment, settings: Settings, unique_name: str, kafka_topic: Callable[..., str]
) -> None:
    """Two processes print the messages of their planned partitions, until Ctrl-C ends them."""
    broker = settings.kafka.bootstrap_servers
    topic = kafka_topic(partitions=3)
    shares = {"a": {topic: [2]}, "b": {topic: [0, 1]}}
    value = make_plan(shares, partition_counts={topic: 3}, group=unique_name).to_bytes()
    with PlanTopic(settings.kafka) as plans:
        plans.ensure()
        publish(plans, unique_name, value, unsigned(value))
    with ExitStack() as stack:
        outputs = {
            name: stack.enter_context(example(environment, broker, unique_name, name, topic))
            for name in shares
        }
        if environment.client.extra == "confluent":
            wait_for_agreement(outputs)
        else:
            gateway = stack.enter_context(KafkaGateway(settings.kafka))
            eventually(partial(owns, gateway, unique_name, shares), "each process owns its share")
        producer = KafkaProducer(bootstrap_servers=broker)
        for partition in range(3):
            producer.send(topic, partition=partition, value=b"hello").get(timeout=PATIENCE_S)
        producer.close()
        for name, share in shares.items():
            lines = {next(outputs[name].lines) for _ in share[topic]}
            assert lines == {f"{topic}-{partition} at 0 b'hello'\n" for partition in share[topic]}


@contextmanager
def example(environment: Environment, *arguments: str) -> Iterator[Output]:
    """Run an example and yield its output; then check the status that it prints on Ctrl-C."""
    with accepting_ctrl_c():
        started = subprocess.Popen(
            [environment.python, ROOT / "examples" / environment.client.example, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
    with started as process:
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            yield Output(process.stdout, process.stderr)
            process.send_signal(signal.SIGINT)
            last_words, _ = process.communicate(timeout=PATIENCE_S)
            assert "plan_version=1" in last_words
            assert process.returncode == 0
        finally:
            process.kill()


def owns(gateway: KafkaGateway, group: str, shares: Mapping[str, Owned]) -> bool:
    """Return whether the broker reports exactly these members with these partitions."""
    try:
        members = gateway.live_group(group).members
    except GroupError:
        return False
    return shares == {
        member.name: {topic: list(share) for topic, share in member.partitions.items()}
        for member in members
    }


def wait_for_agreement(outputs: Mapping[str, Output]) -> None:
    """Wait until confluent-kafka's members log that they follow the plan.

    These members agree on an assignment among themselves, so the broker cannot report it.
    """
    settled = "2 members: the assignment follows plan version 1"
    for output in outputs.values():
        assert any(settled in line for line in output.log)
