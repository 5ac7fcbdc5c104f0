"""A storm of events over a group of consumers in processes, while messages keep coming."""

import logging
import random
import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from fairlead.sandbox import Services
from fairlead.sandbox.cluster import KafkaCluster
from tests.fairlead.followers.helpers import eventually
from tests.fairlead.followers.storm import Storm
from tests.jvm.members import member_command

pytestmark = pytest.mark.kafka

log = logging.getLogger(__name__)

MEMBERS = 8
#: Java's assignor is cooperative, unless it stands beside one that is not.
EAGER = "fairlead.kafka.PlanAssignor,org.apache.kafka.clients.consumer.RangeAssignor"
#: How often each event comes; members that vanish take a session timeout each.
WEIGHTS = {
    "join": 5,
    "leave": 3,
    "kill": 2,
    "pause": 2,
    "plan": 5,
    "tombstone": 1,
    "garbage": 2,
    "grow": 2,
}
#: And where there are several brokers.
OF_BROKERS = {"broker_dies": 2, "broker_freezes": 2}


@pytest.fixture(scope="module")
def brokers(
    pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[KafkaCluster | None]:
    """Return three brokers, where so many are asked for."""
    if pytestconfig.getoption("--storm-brokers") == 1:
        yield None
        return
    with KafkaCluster(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


def make_topics(bootstrap_servers: str, plan_topic: str, topic: str) -> None:
    """Make the topics of a storm, with as many copies as the brokers say."""
    admin = AdminClient({"bootstrap.servers": bootstrap_servers})
    new = [
        NewTopic(plan_topic, 3, config={"cleanup.policy": "compact"}),
        NewTopic(topic, 12),
    ]
    for made in admin.create_topics(new).values():
        made.result(60)


@pytest.fixture(
    params=[
        pytest.param(("kafka-python", {}), id="kafka-python"),
        pytest.param(("kafka-python", {"cooperative": True}), id="kafka-python cooperative"),
        pytest.param(("aiokafka", {}), id="aiokafka"),
        pytest.param(("confluent-kafka", {}), id="confluent-kafka"),
        pytest.param(("java", {}), id="java"),
        pytest.param(("java", {"partition_assignment_strategy": EAGER}), id="java eager"),
    ]
)
def storm(
    request: pytest.FixtureRequest,
    services: Services,
    brokers: KafkaCluster | None,
    unique_name: str,
    tmp_path: Path,
) -> Iterator[Storm]:
    """Return a group before the storm."""
    client, configs = request.param
    seed = request.config.getoption("--storm-seed")
    where = (brokers or services).bootstrap_servers
    plan_topic, topic = f"plans-{unique_name}", f"topic-{unique_name}"
    make_topics(where, plan_topic, topic)
    storm = Storm(
        client=client,
        bootstrap_servers=where,
        group=unique_name,
        plan_topic=plan_topic,
        topic=topic,
        folder=tmp_path,
        rng=random.Random(seed),
        configs=configs,
        brokers=brokers.brokers if brokers else {},
    )
    if client == "java":
        storm.command = member_command(request.getfixturevalue("java_classpath"))
    storm.history.append(f"seed {seed}")
    yield storm
    storm.end()


def test_storm_loses_nothing_and_always_settles(storm: Storm, pytestconfig: Any) -> None:
    """One owner a partition and one version after each event; no message lost at the end."""
    for _ in range(MEMBERS):
        storm.join()
    storm.plan()
    storm.settle()
    storm.settled_s.clear()
    weights = WEIGHTS | OF_BROKERS if storm.brokers else WEIGHTS
    for _ in range(pytestconfig.getoption("--storm-events")):
        what = storm.rng.choices(list(weights), list(weights.values()))[0]
        happened = getattr(storm, what)() or storm.join() or storm.plan()
        storm.history.append(happened)
        storm.settle()
        storm.history[-1] += f": settled in {storm.settled_s[-1]:.1f} s"
    storm.stop_writing()
    eventually(lambda: len(storm.readers()) == storm.sent, "every message is read", within_s=180)
    readers = storm.readers()
    twice = {number: by for number, by in readers.items() if by.total() > 1}
    excused = {number for number, by in twice.items() if by.keys() & storm.harmed}
    log.warning(
        "%s %s, %s: %d events, %d messages, none lost, %d read twice, all but %d around members "
        "that died or were fenced (%d of them); settled in %.1f s as a rule, %.1f s at most",
        storm.client,
        storm.configs,
        storm.history[0],
        len(storm.history) - 1,
        storm.sent,
        len(twice),
        len(twice) - len(excused),
        len(storm.harmed),
        statistics.median(storm.settled_s),
        max(storm.settled_s),
    )
    unexplained = {number: by for number, by in twice.items() if number not in excused}
    # A commit that no coordinator was there to take is no member's fault.
    assert storm.brokers or not unexplained, (unexplained, storm.history)
