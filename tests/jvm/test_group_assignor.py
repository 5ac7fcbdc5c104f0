"""Brokers follow plans for plain consumers; without a plan, members keep their partitions."""

from collections.abc import Iterator
from datetime import timedelta

import pytest
from confluent_kafka.admin import AclOperation

from fairlead.sandbox.kafka import KafkaBroker
from tests.jvm.asking import Program
from tests.jvm.remote import MEMBERS, PLANS, Cluster, Group, allow, jmx_of
from tests.lengths import form
from tests.waiting import PATIENCE_S, eventually

FEW = {"a": [0, 1, 2], "b": [3, 4], "c": [5]}


def test_random_groups_are_complete_and_move_only_by_plans(checks: Program) -> None:
    """In random groups, the invariants of `Groups.java` hold, and every outcome occurs."""
    count = form(short=2_000, long=200_000)
    outcomes = checks.ask("groups", count=count)
    assert sum(outcomes.values()) == count
    assert min(outcomes.values()) > count / 200, outcomes


def test_hostile_plans_do_not_replace_others(checks: Program) -> None:
    """On a heap of 64 MB, excess plans of absent groups are dropped, but no real group's plan."""
    count = form(short=1_500, long=100_000)
    found = checks.ask("hostile", count=count)
    assert found["skipped"] == 0, found
    assert found["held"] > 100
    assert found["dropped"] > 100
    assert "groups are dropped" in found["problem"]


@pytest.fixture(scope="module")
def cluster(broker: KafkaBroker) -> Cluster:
    """Create the planner's topics, allow the assignor to read them, and return the cluster."""
    cluster = Cluster(broker)
    allow(cluster, AclOperation.DESCRIBE)
    allow(cluster, AclOperation.READ)
    cluster.create(PLANS, 4, compact=True)
    cluster.create(MEMBERS, 4, compact=True)
    return cluster


@pytest.fixture
def group(cluster: Cluster, unique_name: str) -> Iterator[Group]:
    """Return a group without members, on a topic of six partitions."""
    with Group(cluster, unique_name, cluster.create(f"{unique_name}-t", 6), 6) as group:
        yield group


@pytest.mark.kafka
def test_plain_consumers_adopt_plans_and_lose_only_moved_partitions(group: Group) -> None:
    """Members adopt a plan after a rebalance trigger; a second plan moves only one partition."""
    group.join("a", "b", "c")
    group.adopt(1, FEW)
    group.revoked()
    group.adopt(2, {"a": [0, 1], "b": [2, 3, 4], "c": [5]})
    assert group.revoked() == {"a": [2]}


@pytest.mark.kafka
def test_memory_for_compact_plans_is_bounded(
    cluster: Cluster, group: Group, broker: KafkaBroker, checks: Program
) -> None:
    """Forty plans fit on a heap of 512 MB; an int per partition would need three times as much."""
    group.join("a", "b", "c")
    group.adopt(1, FEW)
    for number in range(40):
        cluster.inflate(f"inflated-{number}")
    group.adopt(2, {"a": [0, 1], "b": [2, 3, 4], "c": [5]})
    eventually(lambda: jmx_of(broker, checks)["Plans"] >= 41, lambda: jmx_of(broker, checks))
    found = jmx_of(broker, checks)
    assert (found["Problem"], found["GroupsDropped"], found["RecordsSkipped"]) == ("", 0, 0)


@pytest.mark.kafka
def test_jmx_shows_decisions(group: Group, broker: KafkaBroker, checks: Program) -> None:
    """JMX shows that all records were read, a plan was followed, and no call failed."""
    group.join("a", "b", "c")
    group.adopt(1, FEW)
    found = jmx_of(broker, checks)
    assert (found["Complete"], found["Problem"]) == (True, "")
    assert (found["Failures"], found["LastFailure"], found["RecordsSkipped"]) == (0, "", 0)
    assert found["Outcomes"]["PLAN"] >= 1
    assert found["Outcomes"]["UNIFORM_NEW"] + found["Outcomes"]["UNIFORM"] >= 1
    assert 0 <= found["ReadSecondsAgo"] < PATIENCE_S
    assert found["Plans"] >= 1


@pytest.mark.kafka
@pytest.mark.parametrize("end", ["lapsed", "withdrawn"])
def test_members_keep_partitions_after_the_end_of_a_plan(group: Group, end: str) -> None:
    """Members keep their uneven shares; only the partitions of the member that leaves move."""
    group.join("a", "b", "c")
    group.adopt(1, FEW)
    group.revoked()
    if end == "lapsed":
        group.publish(2, {"a": [5], "b": [3, 4], "c": [0, 1, 2]}, lease=-timedelta(minutes=2))
    else:
        group.cluster.withdraw(group.name, 1)
    group.leave("c")
    group.join("d")
    assert group.revoked() == {}
    assert set(group.owned()["a"]) >= set(FEW["a"])
    assert set(group.owned()["b"]) >= set(FEW["b"])


@pytest.mark.kafka
def test_group_without_a_plan_uses_kafkas_assignor(group: Group) -> None:
    """Members get equally many partitions; a trigger for another group's plan moves none."""
    group.join("a")
    group.join("b", "c")

    def even() -> bool:
        return [len(share) for share in group.owned().values()] == [2, 2, 2]

    eventually(even, group.owned)
    group.revoked()
    group.cluster.trigger(group.name, "somebody-else:7", lambda: not group.joined(), "it joins")
    eventually(group.joined, "the rebalance trigger leaves")
    assert even()
    assert group.revoked() == {}
