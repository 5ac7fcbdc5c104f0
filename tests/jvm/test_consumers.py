"""Java consumers follow plans with one line of configuration."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fairlead.sandbox import Services
from tests.conftest import KafkaTopic
from tests.fairlead.followers.helpers import Fleet
from tests.jvm.members import JavaGroup, JavaMember, java_group
from tests.lengths import form
from tests.waiting import PATIENCE_S, eventually

pytestmark = pytest.mark.kafka

PARTITIONS = 6
COOPERATIVE = "fairlead.kafka.PlanAssignor"
EAGER = "fairlead.kafka.PlanAssignor,org.apache.kafka.clients.consumer.RangeAssignor"


@pytest.fixture
def fleet(services: Services, kafka_topic: KafkaTopic, unique_name: str) -> Iterator[Fleet]:
    """Return a group without members, with a plan topic and a topic to read."""
    plans = kafka_topic(f"plans-{unique_name}", partitions=3, config={"cleanup.policy": "compact"})
    topic = kafka_topic(f"topic-{unique_name}", partitions=PARTITIONS)
    fleet = Fleet(services, unique_name, plans, [topic])
    yield fleet
    fleet.close()


@pytest.fixture
def group(
    services: Services, fleet: Fleet, java_classpath: str, tmp_path: Path
) -> Iterator[JavaGroup]:
    """Return the group of `fleet`, which Java consumers can join."""
    configs: dict[str, Any] = {
        "bootstrap.servers": services.bootstrap_servers,
        "group.id": fleet.group,
        "partition.assignment.strategy": "fairlead.kafka.PlanAssignor",
        "fairlead.plan.topic": fleet.plan_topic,
        "fairlead.rejoin.jitter.ms": 200,
        "fairlead.read.timeout.ms": int(1_000 * PATIENCE_S),
        "heartbeat.interval.ms": 300,
        "auto.offset.reset": "earliest",
    }
    with java_group(java_classpath, tmp_path, fleet.topics[0], configs) as group:
        yield group


def owning(*expected: tuple[JavaMember, list[int]], version: int | None) -> Callable[[], bool]:
    """Return a function that checks members' partitions and their plan version."""
    return lambda: all(
        member.owned == numbers and member.state.get("version", 0) == version
        for member, numbers in expected
    )


@pytest.mark.parametrize(
    "strategy", form(short=[COOPERATIVE], long=[COOPERATIVE, EAGER]), ids=lambda name: name[-16:]
)
def test_plans_are_adopted_and_withdrawn(fleet: Fleet, group: JavaGroup, strategy: str) -> None:
    """Members follow `range`, plans, and `range` again while the application only polls."""
    first, second = (
        group.join(name, partition_assignment_strategy=strategy) for name in ("one", "two")
    )
    halves = [[0, 1, 2], [3, 4, 5]]
    eventually(lambda: sorted([first.owned, second.owned]) == halves, "each owns its range")
    eventually(lambda: first.state["reason"] == "no plan has been published", "why is said")
    fleet.publish(fleet.plan(1, one=[0, 1, 2, 3, 4], two=[5]))
    eventually(owning((first, [0, 1, 2, 3, 4]), (second, [5]), version=1), "the plan is adopted")
    fleet.publish(fleet.plan(2, one=[0, 1, 2, 3, 4, 5], two=[]))
    eventually(owning((first, [0, 1, 2, 3, 4, 5]), (second, []), version=2), "one has all")
    eventually(lambda: "gives 'two' no partitions" in str(second.state["idle"]), "why is said")
    assert first.state["idle"] is None
    rebalances = first.state["rebalances"]
    fleet.publish(fleet.plan(3, one=[0], two=[1, 2, 3, 4, 5]))
    eventually(owning((first, [0]), (second, [1, 2, 3, 4, 5]), version=3), "and a newer one")
    # A cooperative group needs a second round to assign the partitions that were given up.
    rounds = 1 if strategy == EAGER else 2
    eventually(lambda: first.state["rebalances"] == rebalances + rounds, "in as few rounds")
    before = first.state["revoked"], second.state["revoked"]
    fleet.send(None)
    eventually(lambda: sorted([first.owned, second.owned]) == halves, "the fallback takes over")
    eventually(lambda: first.state["reason"] == "the plan was withdrawn", "why is said")
    revoked = first.state["revoked"] - before[0], second.state["revoked"] - before[1]
    if strategy == EAGER:
        assert revoked == (1, 5)
    else:  # only moved partitions were revoked
        assert revoked == ((0, 2) if first.owned == halves[0] else (1, 3))


@pytest.mark.parametrize("java_leads", form(short=[True], long=[True, False]))
def test_java_and_python_follow_in_one_group(
    fleet: Fleet, group: JavaGroup, *, java_leads: bool
) -> None:
    """With a leader of either language, all consumers adopt each plan and report its version."""
    fleet.publish(fleet.plan(1, java=[0, 1], python=[2, 3, 4, 5]))
    if java_leads:
        java = group.join("java")
        eventually(lambda: len(java.owned) == PARTITIONS, "Java leads")
        python = fleet.join("python")
    else:
        python = fleet.join("python", cooperative=True)
        eventually(lambda: sum(map(len, python.owned.values())) == PARTITIONS, "Python leads")
        java = group.join("java")
    (topic,) = fleet.topics

    def settled(java_owns: list[int], python_owns: list[int], version: int) -> bool:
        status = python.status()
        return (
            owning((java, java_owns), version=version)()
            and python.owned == {topic: python_owns}
            and status.plan_version == version
        )

    eventually(lambda: settled([0, 1], [2, 3, 4, 5], 1), "both follow")
    fleet.publish(fleet.plan(2, java=[3, 4, 5], python=[0, 1, 2]))
    eventually(lambda: settled([3, 4, 5], [0, 1, 2], 2), "both follow the newer plan")
