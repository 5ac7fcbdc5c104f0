"""A group with a plan changes to the consumer protocol and back, on a real broker."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import pytest
from confluent_kafka import Producer

from fairlead.domain.advice import CLASSIC
from fairlead.domain.records import StoredPlan
from fairlead.errors import GroupError
from fairlead.kafka.consumer_protocol import CONSUMER
from fairlead.kafka.gateway import KafkaGateway
from fairlead.kafka.plan_topic import PlanTopic
from fairlead.sandbox import Services
from fairlead.settings import Settings
from fairlead.store.plans import PlanStore
from fairlead.workflows.following import follow
from tests.fairlead.followers.helpers import Fleet
from tests.fairlead.kafka.members import BrokerAssigned
from tests.fairlead.workflows.test_following import draft_of, publish
from tests.waiting import PATIENCE_S, eventually

pytestmark = [pytest.mark.kafka, pytest.mark.postgres]

PARTITIONS = 4
Owned = Mapping[str, list[int]]


class Group:
    """A group with its topic, gateway and plans; tests add members."""

    def __init__(
        self,
        settings: Settings,
        store: PlanStore,
        approve: Callable[..., StoredPlan],
        name: str,
        topic: str,
    ) -> None:
        self.name, self.topic = name, topic
        self.kafka = settings.kafka
        self.gateway = KafkaGateway(self.kafka)
        self._store, self._approve = store, approve

    def publish(self, shares: Mapping[str, list[int]]) -> int:
        """Publish a plan as a planning run does; return its version."""
        ids = {self.topic: self.gateway.topics_of([self.topic])[self.topic][0]}
        draft = draft_of(self.name, self.topic, dict(shares), topic_ids=ids)
        version = self._approve(f"{self.name}-{shares}", **draft).version
        with PlanTopic(self.kafka) as plans:
            sent = publish(self._store, self.name, self.gateway, plans)
        assert sent.record is not None, sent.reason
        return version

    def is_followed(self) -> bool:
        """Trigger rebalances as the planner does; return whether the broker follows the plan."""
        published = self._store.in_state("published", groups=[self.name])
        (done,) = follow(self.gateway, self.kafka, [self.name], lambda _: published)
        return done.reached

    def is_of(self, kind: str, members: int) -> bool:
        """Return whether the group has this protocol and number of members."""
        found = self.gateway.live_groups([self.name])[self.name]
        if isinstance(found, GroupError):  # the conversion is in progress
            return False
        return (found.group_type, len(found.members)) == (kind, members)

    def produce(self, values: Iterable[int]) -> None:
        """Append a record for each value; the records go to one partition after the other."""
        producer = Producer(self.kafka.librdkafka())
        for value in values:
            producer.produce(self.topic, str(value), partition=value % PARTITIONS)
        assert producer.flush(PATIENCE_S) == 0


@pytest.fixture
def group(
    settings: Settings,
    store: PlanStore,
    approve: Callable[..., StoredPlan],
    kafka_topic: Any,
    unique_name: str,
) -> Iterator[Group]:
    """Return a group that has a topic but no members."""
    group = Group(settings, store, approve, unique_name, kafka_topic(partitions=PARTITIONS))
    with group.gateway, PlanTopic(group.kafka) as plans:
        plans.ensure()
        yield group


@pytest.fixture
def fleet(services: Services, group: Group) -> Iterator[Fleet]:
    """Return a fleet that adds members of the classic protocol to the group."""
    fleet = Fleet(services, group.name, group.kafka.plan_topic, [group.topic])
    yield fleet
    fleet.close()


@pytest.fixture
def members(group: Group) -> Iterator[BrokerAssigned]:
    """Return an object that adds plain consumers of the consumer protocol to the group."""
    with BrokerAssigned(group.kafka, **{"group.remote.assignor": "fairlead"}) as members:
        yield members


def test_group_with_a_plan_converts_member_by_member_and_back(
    group: Group, fleet: Fleet, members: BrokerAssigned
) -> None:
    """At each step, members own what the plan or `range` assigns, and all records are read.

    Members are replaced one by one: first by members of the consumer protocol, then back.
    """
    plan, classic, sent = {"a": [0, 1, 2], "b": [3]}, dict[str, Any](), 0
    values: list[list[bytes]] = [members.values]

    def join(name: str, *, plain: bool = False) -> None:
        options = {"auto_offset_reset": "earliest", **(fleet.range_only if plain else {})}
        classic[name] = (fleet.join_plain if plain else fleet.join)(name, **options)
        values.append(classic[name].values)

    def owned() -> Owned:
        found = {**{name: consumer.owned for name, consumer in classic.items()}, **members.owned()}
        return {name: share.get(group.topic, []) for name, share in found.items()}

    def step(holds: Callable[[], object], what: str) -> None:
        nonlocal sent
        eventually(holds, what)
        group.produce(range(sent, sent + 20))
        sent += 20

    join("a")
    join("b")
    eventually(lambda: sorted(map(len, owned().values())) == [2, 2], "they share by range")
    version = group.publish(plan)
    step(lambda: owned() == plan, "the plan is followed by its members")
    eventually(lambda: group.is_of(CLASSIC, 2), "it is a classic group")
    classic.pop("a").stop()
    join("a", plain=True)
    step(lambda: sorted(map(len, owned().values())) == [2, 2], "one is a plain one: range")
    classic.pop("b").stop()
    members.join(group.name, "b", [group.topic])
    eventually(lambda: group.is_of(CONSUMER, 2), "the group is converted")
    eventually(group.is_followed, "the broker's target is the plan's")
    step(lambda: owned() == plan, "the plain one of the classic protocol follows, too")
    classic.pop("a").stop()
    members.join(group.name, "a", [group.topic])
    eventually(group.is_followed, "nobody is left of the classic protocol")
    step(lambda: owned() == plan, "all are plain ones, and the plan is followed")
    members.leave("a")
    join("a")
    eventually(group.is_followed, "one goes back")
    step(lambda: owned() == plan, "it takes what the coordinator gives")
    members.leave("b")
    join("b")
    eventually(lambda: group.is_of(CLASSIC, 2), "the group is converted back")
    step(lambda: owned() == plan, "the plan is followed by its members again")
    eventually(lambda: classic["a"].status().plan_version == version, "and they say so")
    eventually(
        lambda: {int(value) for read in values for value in read} == set(range(sent)), "all is read"
    )
