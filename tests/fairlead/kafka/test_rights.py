"""Planner and consumers need only the rights in docs/trust.md; the broker denies all others."""

import uuid
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import partial
from typing import Any, Final

import pytest
from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import NewTopic

from fairlead.domain.policy import Discovery
from fairlead.errors import ConfigurationError, FairleadError
from fairlead.followers import aiokafka, kafka_python
from fairlead.followers.confluent import PlanConsumer
from fairlead.kafka.gateway import KafkaGateway
from fairlead.kafka.members_topic import MembersTopic
from fairlead.kafka.plan_topic import PlanTopic
from fairlead.kafka.rebalance_trigger import RebalanceTrigger, TriggerConnection
from fairlead.settings import KafkaSettings, Settings
from fairlead.surfaces.doctor import Finding, examine_kafka
from fairlead.surfaces.survey.finding import Survey
from fairlead.wire.partitions import by_topic, pairs
from fairlead.workflows.following import send_members
from fairlead.workflows.rebalancing import BrokerPlan, trigger_rebalances
from tests.cluster import QUIET
from tests.fairlead.followers.helpers import (
    AiokafkaMember,
    ConfluentMember,
    KafkaPythonMember,
    Owned,
    make_plan,
)
from tests.fairlead.kafka.members import BrokerAssigned, as_followers
from tests.fairlead.kafka.secured import Right, SecuredBroker, rights
from tests.records import newest_record, publish, unsigned
from tests.topics import create_topics
from tests.waiting import PATIENCE_S, eventually

pytestmark = pytest.mark.kafka

CLIENTS = ("kafka-python", "aiokafka", "confluent-kafka")


@pytest.fixture(scope="module")
def broker(secured: SecuredBroker) -> SecuredBroker:
    """Return a broker with a planner that has the documented rights."""
    secured.add_user("planner")
    for right in rights("planner"):
        if right.name:
            secured.allow("planner", right)
    return secured


def test_queries_create_no_topics(broker: SecuredBroker) -> None:
    """No query creates a topic, because a plan topic with default settings would lose plans."""
    name = f"plans-{uuid.uuid4().hex[:8]}"
    settings = KafkaSettings(
        bootstrap_servers=broker.open_servers, plan_topic=name, request_timeout_s=PATIENCE_S
    )
    with KafkaGateway(settings) as gateway, suppress(FairleadError):
        gateway.topics_of([f"gone-{name}"])
    with PlanTopic(settings) as topic:
        with pytest.raises(ConfigurationError, match="cannot be described"):
            topic.origin  # noqa: B018 - asks
        topic.ensure()
        topic.ensure()
    eventually(lambda: name in broker.admin.list_topics(timeout=PATIENCE_S).topics, "it is there")
    made = broker.admin.list_topics(timeout=PATIENCE_S).topics
    assert [topic for topic in made if name in topic] == [name]
    assert len(made[name].partitions) == settings.plan_topic_partitions


@pytest.fixture
def orders(broker: SecuredBroker) -> str:
    """Return a topic of four partitions, with ten records in each."""
    topic = f"orders-{uuid.uuid4().hex[:8]}"
    create_topics(broker.admin, NewTopic(topic, 4))
    producer = Producer({"bootstrap.servers": broker.open_servers, **QUIET})
    for number in range(40):
        producer.produce(topic, b"record", partition=number % 4)
    assert producer.flush(PATIENCE_S) == 0
    return topic


def start(broker: SecuredBroker, client: str, user: str, topic: str, named: dict[str, Any]) -> Any:
    """Start a plan follower on a thread."""
    if client == "kafka-python":
        return KafkaPythonMember(
            kafka_python.PlanConsumer(topic, **broker.kafka_python(user), **named)
        )
    if client == "aiokafka":
        return AiokafkaMember(
            lambda: aiokafka.PlanConsumer(topic, **broker.aiokafka(user), **named)
        )
    names = {"group.id": named["group_id"], "client.id": named["client_id"], "log_level": 0}
    settings = broker.librdkafka(user) | names
    return ConfluentMember(PlanConsumer(settings), [topic])


@pytest.mark.parametrize("client", CLIENTS)
def test_rights_suffice_to_plan_and_to_follow(
    broker: SecuredBroker, orders: str, client: str
) -> None:
    """The planner can create its topic, publish a plan, and see owners; members follow the plan.

    Each member logs in by TLS and SCRAM, and has only its client's documented rights.
    """
    group, user = f"group-{orders}", f"user-{orders}"
    broker.add_user(user)
    for login, theirs in ((user, rights(client)), ("planner", rights("planner"))):
        for right in theirs:
            if login == user or right.name is None:
                broker.allow(login, right, group if right.kind == "groups" else orders)
    shares: dict[str, Owned] = {"a": {orders: [0]}, "b": {orders: [1, 2, 3]}}
    value = make_plan(shares, partition_counts={orders: 4}, group=group).to_bytes()
    with PlanTopic(broker.settings("planner")) as topic, ExitStack() as leaving:
        topic.ensure()
        position = publish(topic, group, value, unsigned(value))
        members = {}
        for name in shares:
            named = {"group_id": group, "client_id": name, "session_timeout_ms": 60_000}
            members[name] = start(broker, client, user, orders, named)
            leaving.callback(members[name].stop)
        eventually(lambda: {name: m.owned for name, m in members.items()} == shares, "they follow")
        assert newest_record(topic, group).position == position
        with KafkaGateway(broker.settings("planner")) as gateway:
            assert group in gateway.list_groups()
            live = gateway.live_group(group)
            seen = {member.name: by_topic(pairs(member.partitions)) for member in live.members}
            assert seen == shares
            (row,) = gateway.snapshot([group]).samples.to_pylist()
            assert (row["topics"], set(row["end"]), row["error"]) == ([orders], {10}, None)


def test_rights_suffice_if_the_broker_assigns(broker: SecuredBroker, orders: str) -> None:
    """The planner describes the group, publishes its members' names, and triggers rebalances.

    A rebalance trigger without READ is refused. Plain consumers need rights on only their topics
    and group. No trigger moves their partitions.
    """
    group, user, stranger = (f"{what}-{orders}" for what in ("group", "user", "stranger"))
    consumes = [Right("groups", None, ("READ",)), Right("topics", None, ("DESCRIBE", "READ"))]
    for login, theirs in ((user, consumes), ("planner", rights("planner")), (stranger, ())):
        if login != "planner":
            broker.add_user(login)
        for right in theirs:
            if right.name is None:
                broker.allow(login, right, group if right.kind == "groups" else orders)
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

        def both_own_two() -> bool:
            return [len(share.get(orders, ())) for share in members.owned().values()] == [2, 2]

        eventually(both_own_two, "they share")
        eventually(lambda: gateway.broker_groups([group])[group].state == "Stable", "it settles")
        owned = members.owned()
        described = as_followers(gateway)([group])
        members_topic = MembersTopic(settings)
        members_topic.ensure()
        assert send_members(members_topic, described, gateway.topics_of([orders])) == ""
        (done,) = trigger_rebalances(
            {group: BrokerPlan(plan, {orders: 4})},
            as_followers(gateway),
            settings,
            stays_s=(1.0, 1.0),
        )
        assert done.triggers == 2
        assert "did not follow the plan in time" in done.reason
        with (
            TriggerConnection(broker.settings(stranger)) as connection,
            RebalanceTrigger(connection, group, 1) as trigger,
        ):
            eventually(lambda: "authoriz" in trigger.heartbeat().lower(), "it is refused")
        assert members.owned() == owned


def test_without_rights_nothing_is_possible(broker: SecuredBroker) -> None:
    """A user without rights can neither create the plan topic nor list or describe groups."""
    broker.add_user("nobody")
    settings = broker.settings("nobody")
    with pytest.raises(ConfigurationError, match=r"fairlead\.plans"):
        PlanTopic(settings).ensure()
    with KafkaGateway(settings) as gateway:
        assert gateway.list_groups() == []
        with pytest.raises(FairleadError, match=r"(?i)authoriz"):
            gateway.live_group("orders")


def only(right: Right, operation: str) -> Right:
    """Return the right limited to one of its operations."""
    return replace(right, operations=(operation,))


#: Settings with the names of Fairlead's topics, on which a planner needs rights.
OWN: Final = Settings().kafka
PLANS: Final = Right("topic", OWN.plan_topic, ("DESCRIBE", "DESCRIBE_CONFIGS", "READ", "WRITE"))
MEMBERS: Final = replace(PLANS, name=OWN.members_topic)
COORDINATION: Final = Right("topic", OWN.coordination_topic, ("DESCRIBE", "READ"))
SENDING: Final = Right("transactional ids", f"{OWN.plan_topic}-", ("WRITE",))
LISTING: Final = Right("cluster", "kafka-cluster", ("DESCRIBE",))
GROUP: Final = Right("group", "{classic}", ("DESCRIBE",))
BY_BROKER: Final = Right("group", "{by_broker}", ("DESCRIBE", "READ"))
TOPIC: Final = Right("topic", "{topic}", ("DESCRIBE",))
#: Cases: the right that the test revokes; the name of the doctor's finding; part of the finding's
#: remedy; whether a survey needs the right.
WAYS: Final = [
    (LISTING, "listing", "Describe --cluster", True),
    (GROUP, "groups", "Describe --group {classic}", True),
    (BY_BROKER, "groups", "Describe --group {by_broker}", True),
    (only(BY_BROKER, "READ"), "groups", "Read --group {by_broker}", False),
    (TOPIC, "topics", "Describe --topic {topic}", True),
    (PLANS, OWN.plan_topic, "Describe --operation DescribeConfigs", False),
    (only(PLANS, "DESCRIBE_CONFIGS"), OWN.plan_topic, "DescribeConfigs --topic", False),
    (only(PLANS, "READ"), OWN.plan_topic, "Read --topic", False),
    (only(PLANS, "WRITE"), OWN.plan_topic, "Write --topic", False),
    (only(MEMBERS, "DESCRIBE_CONFIGS"), OWN.members_topic, "DescribeConfigs --topic", False),
    (only(MEMBERS, "READ"), OWN.members_topic, "Read --topic", False),
    (only(MEMBERS, "WRITE"), OWN.members_topic, "Write --topic", False),
    (only(COORDINATION, "READ"), OWN.coordination_topic, "Read --topic", False),
    (SENDING, "transactional ids", f"Write --transactional-id {SENDING.name}", False),
]


def named(right: Right, names: Mapping[str, str]) -> Right:
    """Return a right, with the placeholders in its name replaced by these names."""
    return replace(right, name=(right.name or "").format(**names))


def test_each_missing_right_is_named_with_its_remedy(broker: SecuredBroker, orders: str) -> None:
    """The doctor names each missing right; a survey names only those that a survey needs.

    If all rights are granted, the doctor names none; if the plan topic is absent, it names CREATE.
    """
    user, names = (
        f"doctored-{orders}",
        {"classic": f"{orders}-classic", "by_broker": f"{orders}-by-broker", "topic": orders},
    )
    broker.add_user(user)
    for right in (PLANS, MEMBERS, COORDINATION, SENDING, LISTING, GROUP, BY_BROKER, TOPIC):
        broker.allow(user, named(right, names))
    include = (names["classic"], names["by_broker"])
    settings = Settings(kafka=broker.settings(user), discovery=Discovery(include=include))
    _make(broker, settings.kafka)
    with ExitStack() as leaving:
        for protocol, group in (("classic", include[0]), ("consumer", include[1])):
            config = {"bootstrap.servers": broker.open_servers, "group.protocol": protocol}
            config["max.poll.interval.ms"] = str(int(1_000 * PATIENCE_S))  # no further polls follow
            consumer = Consumer(config | {"group.id": group, "client.id": protocol})
            leaving.callback(consumer.close)
            consumer.subscribe([orders])
            eventually(lambda: consumer.poll(0.1) is None and bool(consumer.assignment()), "joins")  # noqa: B023 - at once
        for right, name, remedy, surveyed in WAYS:
            missing = named(right, names)
            broker.deny(user, missing)
            line = f"{name}: {remedy.format(**names)}"
            eventually(partial(_is_named, settings, name, remedy.format(**names)), line)
            if surveyed:
                assert missed_of(orders, settings.kafka) == {(missing.kind, missing.name)}, line
            broker.allow(user, missing)
        others = [PLANS, MEMBERS, only(COORDINATION, "READ"), only(BY_BROKER, "READ"), SENDING]
        for right in others:
            broker.deny(user, named(right, names))
        eventually(partial(_is_named, settings, "transactional ids", "Write"), "they are denied")
        assert missed_of(orders, settings.kafka) == set()
        for right in others:
            broker.allow(user, named(right, names))
        eventually(lambda: wrong(settings) == [], "all is right")
    absent = f"absent-{orders}"
    broker.allow(user, replace(PLANS, name=absent))
    there = settings.kafka.model_copy(update={"plan_topic": absent})
    (plans,) = (
        finding
        for finding in wrong(settings.model_copy(update={"kafka": there}))
        if finding.name == absent
    )
    assert plans.detail.endswith("CREATE is missing")


def _is_named(settings: Settings, name: str, remedy: str) -> bool:
    return any(finding.name == name and remedy in finding.remedy for finding in wrong(settings))


def _make(broker: SecuredBroker, kafka: KafkaSettings) -> None:
    """Create Fairlead's topics, unless another test has created them."""
    compacted = {"cleanup.policy": "compact"}
    topics = [
        NewTopic(name, 1, config=compacted) for name in (kafka.plan_topic, kafka.members_topic)
    ]
    for future in broker.admin.create_topics(
        [*topics, NewTopic(kafka.coordination_topic, 1)]
    ).values():
        with suppress(KafkaException):
            future.result(PATIENCE_S)


def wrong(settings: Settings) -> list[Finding]:
    """Return the doctor's findings about missing Kafka rights."""
    return [
        finding
        for finding in examine_kafka(settings)
        if "kafka-acls.sh" in finding.remedy and finding.name != "plug-in"
    ]


def missed_of(topic: str, kafka: KafkaSettings) -> set[tuple[str, str]]:
    """Return the missing rights that a survey finds, except those on other tests' groups."""
    with KafkaGateway(kafka) as gateway:
        survey = Survey(gateway)
        survey.sample()
    missed = {(row["kind"], row["name"]) for row in survey.missing()}
    return {(kind, name) for kind, name in missed if kind != "group" or topic in name}
