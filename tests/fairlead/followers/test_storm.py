"""Random events in groups of consumer processes, while messages keep arriving."""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fairlead.sandbox import Services
from tests.cluster import KafkaCluster
from tests.fairlead.followers.storm import Kind, Storm
from tests.fairlead.followers.storming import OF_BROKERS, WEIGHTS, make_topics, weather
from tests.jvm.members import member_command
from tests.lengths import form

pytestmark = pytest.mark.kafka

#: Java's PlanAssignor, which is cooperative unless an eager assignor is listed with it.
EAGER = "fairlead.kafka.PlanAssignor,org.apache.kafka.clients.consumer.RangeAssignor"


@pytest.fixture(scope="module")
def brokers(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[KafkaCluster | None]:
    """Return a cluster of three brokers; None means the test run's single broker."""
    if request.param == 1:
        yield None
        return
    with KafkaCluster(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


PYTHON = (Kind("kafka-python"), Kind("kafka-python", {"cooperative": True}))


def java(classpath: str) -> dict[str, Kind]:
    """Return kinds of Java consumers by name."""
    command, eager = member_command(classpath), {"partition_assignment_strategy": EAGER}
    return {
        "java": Kind("java", command=command),
        "java eager": Kind("java", eager, command),
        "java static": Kind("java", command=command, static=True),
    }


#: Kinds of consumers in a storm, and the number of brokers.
OVER = [
    ("kafka-python", 1),
    ("aiokafka", 1),
    ("confluent-kafka", 1),
    *form(
        short=[],
        long=[
            ("java", 1),
            ("java eager", 1),
            ("java static", 1),
            ("java beside kafka-python", 1),
            ("kafka-python", 3),
            ("aiokafka", 3),
            ("confluent-kafka", 3),
        ],
    ),
]


@pytest.fixture
def kinds(request: pytest.FixtureRequest) -> tuple[Kind, ...]:
    """Return the possible kinds of consumers of the group."""
    if request.param == "kafka-python":
        return PYTHON
    if not request.param.startswith("java"):
        return (Kind(request.param),)
    found = java(request.getfixturevalue("java_classpath"))
    if request.param == "java beside kafka-python":
        return (*PYTHON, found["java"], found["java eager"])
    return (found[request.param],)


@pytest.fixture
def storm(  # noqa: PLR0917 - fixtures
    request: pytest.FixtureRequest,
    services: Services,
    brokers: KafkaCluster | None,
    kinds: tuple[Kind, ...],
    unique_name: str,
    tmp_path: Path,
) -> Iterator[Storm]:
    """Return a group that has no consumers and no plan yet."""
    seed = request.config.getoption("--storm-seed")
    where = (brokers or services).bootstrap_servers
    plan_topic, topic = f"plans-{unique_name}", f"topic-{unique_name}"
    make_topics(where, plan_topic, topic)
    storm = Storm(
        kinds=kinds,
        bootstrap_servers=where,
        group=unique_name,
        plan_topic=plan_topic,
        topic=topic,
        folder=tmp_path,
        rng=random.Random(seed),
        brokers=brokers.brokers if brokers else {},
    )
    storm.history.append(f"seed {seed}")
    yield storm
    storm.end()


@pytest.mark.parametrize(("kinds", "brokers"), OVER, indirect=True)
def test_storm_loses_no_message_and_always_settles(storm: Storm, pytestconfig: Any) -> None:
    """After each event, each partition gets one owner and members follow one plan version."""
    weights = WEIGHTS | OF_BROKERS if storm.brokers else WEIGHTS
    weather(storm, pytestconfig.getoption("--storm-events"), weights)
