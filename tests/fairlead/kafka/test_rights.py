"""The rights that docs/trust.md states suffice, on a broker that denies whatever is not allowed."""

import uuid
from contextlib import ExitStack, closing
from dataclasses import replace
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import NewTopic

from fairlead.domain.policy import Discovery
from fairlead.errors import ConfigurationError, FairleadError
from fairlead.followers import aiokafka, kafka_python
from fairlead.followers.confluent import PlanConsumer
from fairlead.kafka.gateway import KafkaGateway
from fairlead.kafka.members_topic import MembersTopic
from fairlead.kafka.nudge import Nudge
from fairlead.kafka.plan_topic import PlanTopic
from fairlead.settings import Settings
from fairlead.surfaces.doctor import READS, WRITES, examine_kafka
from fairlead.surfaces.survey.finding import Survey
from fairlead.wire.partitions import by_topic
from fairlead.workflows.following import tell_members
from fairlead.workflows.nudging import Goal, nudge_all
from tests.fairlead.followers.helpers import (
    AiokafkaMember,
    ConfluentMember,
    KafkaPythonMember,
    Owned,
    eventually,
    make_plan,
)
from tests.fairlead.kafka.members import BrokerAssigned
from tests.fairlead.kafka.secured import Right, SecuredBroker, rights
from tests.records import unsigned

pytestmark = pytest.mark.kafka

CLIENTS = ("kafka-python", "aiokafka", "confluent-kafka")


@pytest.fixture(scope="module")
def broker(secured: SecuredBroker) -> SecuredBroker:
    """Return a broker with a planner who has the rights of the documents."""
    secured.add_user("planner")
    for right in rights("planner"):
        if right.name:
            secured.allow("planner", right)
    return secured


@pytest.fixture
def orders(broker: SecuredBroker) -> str:
    """Return a topic of four partitions, with ten records in each."""
    topic = f"orders-{uuid.uuid4().hex[:8]}"
    broker.admin.create_topics([NewTopic(topic, 4)])[topic].result(30)
    producer = Producer({"bootstrap.servers": broker.open_servers})
    for number in range(40):
        producer.produce(topic, b"record", partition=number % 4)
    assert producer.flush(30) == 0
    return topic


def start(broker: SecuredBroker, client: str, user: str, topic: str, named: dict[str, Any]) -> Any:
    """Start a follower on a thread."""
    if client == "kafka-python":
        return KafkaPythonMember(
            kafka_python.PlanConsumer(topic, **broker.kafka_python(user), **named)
        )
    if client == "aiokafka":
        return AiokafkaMember(
            lambda: aiokafka.PlanConsumer(topic, **broker.aiokafka(user), **named)
        )
    names = {"group.id": named["group_id"], "client.id": named["client_id"]}
    settings = broker.librdkafka(user) | names
    return ConfluentMember(PlanConsumer(settings), [topic])


@pytest.mark.parametrize("client", CLIENTS)
def test_rights_suffice_to_plan_and_to_follow(
    broker: SecuredBroker, orders: str, client: str
) -> None:
    """The planner makes its topic, publishes, reads back, and sees who owns what; members follow.

    Each member has the rights of its client and no others, by TLS and SCRAM.
    """
    group, user = f"group-{orders}", f"user-{orders}"
    broker.add_user(user)
    for one, theirs in ((user, rights(client)), ("planner", rights("planner"))):
        for right in theirs:
            if one == user or right.name is None:
                broker.allow(one, right, group if right.kind == "groups" else orders)
    shares: dict[str, Owned] = {"a": {orders: [0]}, "b": {orders: [1, 2, 3]}}
    value = make_plan(shares, partition_counts={orders: 4}, group=group).to_bytes()
    with PlanTopic(broker.settings("planner")) as topic, ExitStack() as leaving:
        topic.ensure()
        position = topic.publish(group, value, unsigned(value))
        members = {}
        for name in shares:
            named = {"group_id": group, "client_id": name}
            members[name] = start(broker, client, user, orders, named)
            leaving.callback(members[name].stop)
        eventually(lambda: all(m.status().rule == "plan" for m in members.values()), "they follow")
        assert {name: member.owned for name, member in members.items()} == shares
        told = topic.read(group)
        assert told is not None
        assert told.position == position
        with KafkaGateway(broker.settings("planner")) as gateway:
            assert group in gateway.list_groups()
            seen = {m.name: by_topic(pairs(m)) for m in gateway.live_group(group).members}
            assert seen == shares
            offsets = gateway.snapshot([group]).tables["offsets"].to_pylist()
            assert {row["end_offset"] for row in offsets if row["topic"] == orders} == {10}
            assert not any(row["error"] for row in offsets)


def test_rights_suffice_where_the_broker_assigns(broker: SecuredBroker, orders: str) -> None:
    """The planner describes the group, tells who is who, and nudges; without READ it is refused.

    Plain consumers need nothing but their topics and their group; refused or not, they keep all.
    """
    group, user, stranger = (f"{what}-{orders}" for what in ("group", "user", "stranger"))
    consumes = [Right("groups", None, ("READ",)), Right("topics", None, ("DESCRIBE", "READ"))]
    for one, theirs in ((user, consumes), ("planner", rights("planner")), (stranger, ())):
        if one != "planner":
            broker.add_user(one)
        for right in theirs:
            if right.name is None:
                broker.allow(one, right, group if right.kind == "groups" else orders)
    settings = broker.settings("planner")
    plan = make_plan({"a": {orders: [0, 1, 2, 3]}, "b": {}}, partition_counts={orders: 4})
    with (
        BrokerAssigned(broker.settings(user)) as members,
        KafkaGateway(settings) as gateway,
        PlanTopic(settings) as topic,
    ):
        topic.ensure()
        for name in "ab":
            members.join(group, name, [orders])
        both = lambda: [len(share) for share in members.owned().values()] == [1, 1]  # noqa: E731
        eventually(both, "they share")
        owned = members.owned()
        found = gateway.broker_groups([group])
        told = {group: replace(found[group], assignor="fairlead")}
        assert tell_members(MembersTopic(settings), told, gateway.topics_of([orders])) == ""
        (done,) = nudge_all(
            {group: Goal(plan, {orders: 4})},
            gateway.broker_groups,
            settings,
            stays_s=(1.0, 1.0),
            any_assignor=True,
        )
        assert done.nudges == 2
        assert "not reached in time" in done.reason
        with Nudge(broker.settings(stranger), group, 1) as refused:
            eventually(lambda: "authoriz" in refused.refused().lower(), "it is refused")
        assert members.owned() == owned


def pairs(member: Any) -> list[tuple[str, int]]:
    """Return what a described member owns."""
    return [(topic, n) for topic, numbers in member.partitions.items() for n in numbers]


def test_without_rights_nothing_is_possible(broker: SecuredBroker) -> None:
    """Else the test above would show nothing; and what is missing is said."""
    broker.add_user("nobody")
    settings = broker.settings("nobody")
    with pytest.raises(ConfigurationError, match=r"fairlead\.plans"):
        PlanTopic(settings).ensure()
    with KafkaGateway(settings) as gateway:
        assert gateway.list_groups() == []
        with pytest.raises(FairleadError, match=r"(?i)authoriz"):
            gateway.live_group("orders")


def test_survey_names_the_rights_that_are_missing(broker: SecuredBroker, orders: str) -> None:
    """A group that may not be described stops no survey, and its remedy is told."""
    group, user = f"{orders}-group", f"surveyor-{orders}"
    consumer = Consumer(
        {
            "bootstrap.servers": broker.open_servers,
            "group.id": group,
            "auto.offset.reset": "earliest",
        }
    )
    consumer.subscribe([orders])
    broker.add_user(user)
    broker.allow(user, Right("cluster", "kafka-cluster", ("DESCRIBE",)))
    with closing(consumer), KafkaGateway(broker.settings(user)) as gateway:
        eventually(lambda: consumer.poll(0.1) is not None, "the consumer reads")
        survey = Survey(gateway)
        survey.look()
    missing = {(one["kind"], one["name"]): one["remedy"] for one in survey.missing()}
    assert f"--operation Describe --group {group}" in missing["group", group]
    assert group in {row["group"] for row in survey.found()}


def test_doctor_names_each_right_that_is_missing(broker: SecuredBroker, orders: str) -> None:
    """The operation, on what, and the remedy; one that is given is named no more."""
    group, user = f"{orders}-group", f"doctored-{orders}"
    settings = Settings(kafka=broker.settings(user), discovery=Discovery(include=(group,)))
    plans, pins = settings.kafka.plan_topic, settings.kafka.pin_topic

    def failed() -> dict[str, str]:
        found = [one for one in examine_kafka(settings) if one.state == "failed"]
        return {one.name: f"{one.said}: {one.remedy}" for one in found}

    def named(name: str, text: str) -> None:
        eventually(lambda: text in failed().get(name, ""), f"{name}: {text}")

    consumer = Consumer({"bootstrap.servers": broker.open_servers, "group.id": group})
    consumer.subscribe([orders])
    broker.add_user(user)
    broker.allow(user, Right("cluster", "kafka-cluster", ("DESCRIBE",)))
    with closing(consumer), PlanTopic(broker.settings("planner")) as topic:
        topic.ensure()
        eventually(lambda: consumer.poll(0.1) is None and bool(consumer.assignment()), "it joins")
        named("groups", f"--operation Describe --group {group}")
        broker.allow(user, Right("groups", None, ("DESCRIBE",)), group)
        named("topics", f"--operation Describe --topic {orders}")
        broker.allow(user, Right("topics", None, ("DESCRIBE",)), orders)
        named(plans, f"--operation Describe --topic {plans}")
        broker.allow(user, Right("topic", plans, ("DESCRIBE", "DESCRIBE_CONFIGS", "READ")))
        named(plans, "rights are missing: WRITE")
        broker.allow(user, Right("topic", plans, ("WRITE",)))
        broker.allow(user, Right("topic", pins, READS))
        broker.allow(user, Right("topic", settings.kafka.members_topic, WRITES))
        eventually(lambda: failed() == {}, "all is right")
