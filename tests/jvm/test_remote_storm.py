"""Random events while plain consumers read messages from a broker that follows plans."""

import random
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from pydantic import SecretStr

from fairlead.kafka.gateway import KafkaGateway
from fairlead.sandbox.kafka import KafkaBroker
from fairlead.settings import KafkaSettings
from tests.cluster import KafkaCluster
from tests.fairlead.followers.storm import Kind
from tests.fairlead.followers.storm_worker import PLAIN
from tests.fairlead.followers.storming import WEIGHTS, weather
from tests.jvm.members import member_command
from tests.jvm.remote import MEMBERS, PLANS, Cluster
from tests.jvm.remote_storm import RemoteStorm
from tests.records import PUBLIC, SIGNER

pytestmark = pytest.mark.kafka

#: Settings of brokers. Members that died are removed after ten seconds, as in the storms of the
#: classic protocol. Unsigned records are refused.
QUICK = {
    "group.consumer.heartbeat.interval.ms": "300",
    "group.consumer.min.heartbeat.interval.ms": "300",
    "group.consumer.session.timeout.ms": "10000",
    "group.consumer.min.session.timeout.ms": "10000",
    "fairlead.public.keys": PUBLIC,
}


@pytest.fixture(scope="module")
def brokers(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[KafkaBroker | KafkaCluster]:
    """Return one broker or three, each with the assignor."""
    folder = tmp_path_factory.mktemp("kafka")
    if request.param > 1:
        with KafkaCluster(folder, assignor=True, settings=[QUICK] * 3) as cluster:
            yield cluster
    else:
        broker = KafkaBroker(folder, assignor=True, settings=QUICK)
        broker.start()
        yield broker
        broker.kill()


@pytest.fixture(scope="module")
def cluster(brokers: KafkaBroker | KafkaCluster) -> Cluster:
    """Return the cluster, with the planner's topics."""
    cluster = Cluster(brokers, SIGNER)
    for topic in (PLANS, MEMBERS):
        cluster.create(topic, 4, compact=True)
    return cluster


@pytest.fixture(params=["confluent-kafka", "java", "static", "mixed"])
def kinds(request: pytest.FixtureRequest, java_classpath: str) -> tuple[Kind, ...]:
    """Return the kinds of consumers that the group may have."""
    command = member_command(java_classpath)
    found = {
        "confluent-kafka": (Kind(PLAIN),),
        "java": (Kind("java", command=command),),
        "static": (Kind(PLAIN, static=True), Kind("java", command=command, static=True)),
        "mixed": (Kind(PLAIN), Kind("java", command=command)),
    }
    return found[request.param]


@pytest.fixture
def storm(  # noqa: PLR0917 - fixtures
    pytestconfig: pytest.Config,
    brokers: KafkaBroker | KafkaCluster,
    cluster: Cluster,
    kinds: tuple[Kind, ...],
    unique_name: str,
    tmp_path: Path,
) -> Iterator[RemoteStorm]:
    """Return a group that has no consumers and no plan yet."""
    seed = pytestconfig.getoption("--storm-seed")
    settings = KafkaSettings(
        bootstrap_servers=cluster.servers,
        request_timeout_s=30.0,  # clock: brokers may be down for a while
        private_key=SecretStr(SIGNER.private_text()),
    )
    with KafkaGateway(settings) as gateway:
        storm = RemoteStorm(
            kinds=kinds,
            bootstrap_servers=cluster.servers,
            group=unique_name,
            plan_topic=PLANS,
            topic=cluster.create(unique_name, 12),
            folder=tmp_path,
            rng=random.Random(seed),
            brokers=brokers.brokers if isinstance(brokers, KafkaCluster) else {},
            lone=brokers if isinstance(brokers, KafkaBroker) else None,
            cluster=cluster,
            gateway=gateway,
        )
        storm.history.append(f"seed {seed}")
        yield storm
        storm.end()


@pytest.mark.test_long(
    guarded_by="tests/jvm/test_group_assignor.py::test_plain_consumers_adopt_plans_and_lose_only_moved_partitions"
)
@pytest.mark.parametrize(
    ("brokers", "more"),
    [
        pytest.param(1, {}, id="the broker stays"),
        pytest.param(1, {"restart": 2}, id="the broker restarts"),
        pytest.param(3, {"both_die": 10}, id="the coordinator dies with a member"),
    ],
    indirect=["brokers"],
)
def test_storm_settles_as_planned_and_loses_no_message(
    storm: RemoteStorm, pytestconfig: pytest.Config, more: Mapping[str, int]
) -> None:
    """After each event, the owners are those of the newest plan."""
    weather(storm, pytestconfig.getoption("--storm-events"), {**WEIGHTS, **more})
