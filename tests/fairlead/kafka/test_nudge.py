"""A nudge outlives its coordinator's restart, on a broker of its own."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from fairlead.kafka.gateway import KafkaGateway
from fairlead.kafka.nudge import Nudge
from fairlead.sandbox.kafka import KafkaBroker
from fairlead.settings import KafkaSettings
from tests.cluster import QUIET_PROPERTIES
from tests.fairlead.kafka.members import BrokerAssigned
from tests.topics import create_topics
from tests.waiting import eventually

pytestmark = pytest.mark.kafka


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[KafkaBroker]:
    """Return a broker that a test may restart."""
    broker = KafkaBroker(tmp_path)
    broker.start()
    yield broker
    broker.kill()


@pytest.mark.test_long(
    guarded_by="tests/fairlead/workflows/test_broker_follows.py::test_plans_are_followed_as_they_are_published_and_as_members_come_and_go"
)
def test_a_nudge_stays_and_leaves_though_its_coordinator_restarts(broker: KafkaBroker) -> None:
    """What fails meanwhile is no refusal; afterwards it is the member that it was, and goes."""
    settings = KafkaSettings(
        bootstrap_servers=broker.bootstrap_servers,
        properties=QUIET_PROPERTIES,
        request_timeout_s=30.0,  # clock: it may be waited out while the broker is away
    )
    topics = [NewTopic(topic, 1) for topic in ("orders", settings.plan_topic)]
    admin = AdminClient(settings.librdkafka())  # answers nothing once it is let go
    create_topics(admin, *topics)
    with BrokerAssigned(settings) as members:
        members.join("group", "a", ["orders"])
        members.settle(1)
        with Nudge(settings, "group", 1) as nudge:
            before = nudges(settings)
            broker.kill()
            assert nudge.refused() == ""
            broker.start()
            assert nudge.refused() == ""
            eventually(lambda: nudge.refused() == "" and nudges(settings) == before, "it is there")
        assert len(before) == 1
        assert nudges(settings) == []


def nudges(settings: KafkaSettings) -> list[str]:
    """Return the member ids of the nudges in the group."""
    with KafkaGateway(settings) as gateway:
        found = gateway.broker_groups(["group"])["group"]
    return [member.member_id for member in found.members if member.is_nudge]
