"""The tasks of a Kafka Connect sink follow plans, by a line of the worker's configuration."""

import random
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from fairlead.kafka.gateway import KafkaGateway
from fairlead.sandbox import Services
from fairlead.settings import KafkaSettings
from tests.cluster import KafkaCluster
from tests.conftest import KafkaTopic
from tests.fairlead.followers.helpers import Fleet, make_plan
from tests.fairlead.followers.storm import Kind
from tests.fairlead.followers.storming import OF_BROKERS, WEIGHTS, make_topics, weather
from tests.jvm import connect_worker
from tests.jvm.connect import file_sink, sink_classes
from tests.jvm.connect_storm import ConnectStorm
from tests.waiting import PATIENCE_S, eventually

PARTITIONS = 6
RECORDS = 600


@pytest.mark.kafka
@pytest.mark.test_long(
    guarded_by="tests/jvm/test_consumers.py::test_plans_are_adopted_as_they_come_and_go"
)
def test_sink_tasks_adopt_plans_and_lose_nothing(
    services: Services, kafka_topic: KafkaTopic, tmp_path: Path, unique_name: str
) -> None:
    """Range without a plan; a plan, and a newer one; each record is written."""
    group, topic = f"connect-{unique_name}", kafka_topic(partitions=PARTITIONS)
    plans = kafka_topic(config={"cleanup.policy": "compact"})
    fleet = Fleet(services, group, plans, [topic])
    producer = Producer({"bootstrap.servers": services.bootstrap_servers})
    for number in range(RECORDS):
        producer.produce(topic, str(number), partition=number % PARTITIONS)
    assert producer.flush(PATIENCE_S) == 0
    worker = {
        "bootstrap.servers": services.bootstrap_servers,
        "consumer.partition.assignment.strategy": "fairlead.kafka.PlanAssignor,"
        "org.apache.kafka.clients.consumer.RangeAssignor",
        "consumer.fairlead.plan.topic": plans,
        "consumer.fairlead.rejoin.jitter.ms": "200",
    }
    first, second = (f"connector-consumer-{unique_name}-{number}" for number in range(2))
    settings = KafkaSettings(bootstrap_servers=services.bootstrap_servers)
    with (
        KafkaGateway(settings) as gateway,
        file_sink(tmp_path, unique_name, topic, worker) as written,
    ):

        def owned() -> dict[str, list[int]]:
            live = gateway.live_groups([group])[group]
            members = getattr(live, "members", ())
            return {member.name: list(member.partitions.get(topic, ())) for member in members}

        eventually(lambda: owned() == {first: [0, 1, 2], second: [3, 4, 5]}, "range, without")
        for version, shares in enumerate(
            ({first: [0, 1, 2, 3, 4], second: [5]}, {first: [0], second: [1, 2, 3, 4, 5]}), 1
        ):
            members = {name: {topic: numbers} for name, numbers in shares.items()}
            plan = make_plan(
                members, partition_counts={topic: PARTITIONS}, group=group, version=version
            )
            fleet.publish(plan)
            eventually(lambda shares=shares: owned() == shares, "it is adopted")  # type: ignore[misc]
        eventually(
            lambda: set(written.read_text().split()[1::2]) == set(map(str, range(RECORDS))),
            "all written",
        )
    fleet.close()


@pytest.fixture
def storm(pytestconfig: pytest.Config, unique_name: str, tmp_path: Path) -> Iterator[ConnectStorm]:
    """Return a cluster of workers over three brokers, before the storm."""
    seed = pytestconfig.getoption("--storm-seed")
    (workers := tmp_path / "workers").mkdir()
    command = (sys.executable, connect_worker.__file__)
    kind = Kind("connect", {"classes": str(sink_classes(tmp_path))}, command)
    with KafkaCluster(tmp_path / "brokers") as brokers:
        make_topics(brokers.bootstrap_servers, "plans", "topic")
        storm = ConnectStorm(
            kinds=[kind],
            bootstrap_servers=brokers.bootstrap_servers,
            group=unique_name,
            plan_topic="plans",
            topic="topic",
            folder=workers,
            rng=random.Random(seed),
            brokers=brokers.brokers,
        )
        storm.history.append(f"seed {seed}")
        yield storm
        storm.end()


@pytest.mark.kafka
@pytest.mark.test_long(
    guarded_by="tests/jvm/test_consumers.py::test_plans_are_adopted_as_they_come_and_go"
)
def test_storm_over_workers_loses_nothing_and_always_settles(
    storm: ConnectStorm, pytestconfig: pytest.Config
) -> None:
    """Workers and brokers die and stop for a while; each task is somebody's, and as planned."""
    weather(storm, pytestconfig.getoption("--storm-events"), WEIGHTS | OF_BROKERS)
