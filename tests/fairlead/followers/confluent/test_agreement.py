"""Members stall, die and lose their log in the middle of an agreement round, on a real broker.

At the end of each test every partition has exactly one owner, and no partition ever had two owners
at the same time.
"""

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from fairlead.sandbox import Services
from tests.cluster import KafkaCluster
from tests.fairlead.followers.confluent.group import ConfluentGroup, running
from tests.lengths import form
from tests.waiting import PATIENCE_S, eventually

pytestmark = pytest.mark.kafka

OURS = "what the members share"

POINTS = (
    "before announce",
    "after announce",
    "before assignment record",
    "after assignment record",
    "assign",
)
#: For each way to halt, the points at which the other members wait longest.
SHORT = [
    ("SIGKILL", "after announce"),
    ("SIGSTOP", "before assignment record"),
    ("SIGSTOP", "assign"),
]


@pytest.fixture
def group(services: Services, unique_name: str, tmp_path: Path) -> Iterator[ConfluentGroup]:
    """Return a group without members that reads one topic of six partitions."""
    with running(ConfluentGroup(services.bootstrap_servers, unique_name, tmp_path)) as group:
        yield group


@pytest.mark.parametrize(
    ("number", "point"), form(short=SHORT, long=list(product(["SIGKILL", "SIGSTOP"], POINTS)))
)
def test_member_that_halts_within_a_round_delays_no_other(
    group: ConfluentGroup, number: str, point: str
) -> None:
    """If a member dies or freezes at any point, the others settle; a frozen member rejoins."""
    group.publish(1, a=[0], b=[1, 2], c=[3, 4, 5])
    halt, arm = group.armed(point, number)
    for name in "bc":
        group.start(name, halt=halt)
    group.settles(version=1)
    arm.touch()
    group.start("a", halt=halt)
    halted = group.wait_for_halt(point)
    group.settles(version=1)
    if number == "SIGSTOP":
        group.resume(halted)
        group.settles(version=1, a=[0], b=[1, 2], c=[3, 4, 5])


def test_members_that_decide_at_once_with_different_plans_agree(group: ConfluentGroup) -> None:
    """One generation has two assignment records of different plans; the first one decides."""
    other = f"{group.name}-other"
    group.create_topic(other, 3)
    group.publish(1, a=[0], b=[1, 2, 3, 4, 5])
    group.publish(2, plan_topic=other, a=[1, 2, 3, 4, 5], b=[0])
    at_once: dict[str, Any] = {"turn_s": 0.0, "rejoin_jitter_s": None}
    group.start("a", **at_once)
    group.start("b", **at_once, plan_topic=other)
    for _ in range(20):
        versions = group.versions_assigned(members=2)
        if len(versions) == 2:
            break
        # One member read the other's record before it wrote its own, so b joins again.
        group.leave("b")
        group.start("b", **at_once, plan_topic=other)
    assert {*versions} == {1, 2}
    a, b = ([0], [1, 2, 3, 4, 5]) if versions[0] == 1 else ([1, 2, 3, 4, 5], [0])
    group.settles(version=versions[0], a=a, b=b)


def test_members_with_a_secret_do_not_deal_with_one_that_has_another(
    group: ConfluentGroup,
) -> None:
    """Members with one secret follow the plan; a member with another keeps its range share."""
    group.secret = OURS
    group.publish(1, a=[3, 4, 5], b=[0, 1, 2])
    group.start("a")
    group.start("b")
    group.settles(version=1, a=[3, 4, 5], b=[0, 1, 2])
    group.secret = "-".join(reversed(OURS))
    group.start("stranger")
    # Range gives a 0 and 1, b 2 and 3.
    group.settles(a=[3], b=[0, 1, 2], stranger=[4, 5])
    group.leave("stranger")
    group.settles(version=1, a=[3, 4, 5], b=[0, 1, 2])


def test_assignment_that_decided_is_written_again_and_again(group: ConfluentGroup) -> None:
    """Repeated records survive the log's retention for later readers, and change nothing else."""
    group.publish(1, a=[0], b=[1, 2, 3, 4, 5])
    for name in "ab":
        group.start(name, repeat_assignment_s=0.5)
    group.settles(version=1, a=[0], b=[1, 2, 3, 4, 5])
    generation = group.assignments()[-1].generation
    before = len(group.assignments())
    group.eventually(
        lambda: len(group.assignments()) >= before + 2, "the assignment record is written again"
    )
    repeated = group.assignments()[before:]
    assert {assignment.generation for assignment in repeated} == {generation}
    assert all(assignment == repeated[0] for assignment in repeated)
    group.settles(version=1, a=[0], b=[1, 2, 3, 4, 5])


def test_group_outlives_its_log(group: ConfluentGroup) -> None:
    """After the coordination topic is deleted, members recreate it and agree with a new member."""
    group.publish(1, a=[0], b=[1, 2], c=[3, 4, 5])
    for name in "ab":
        group.start(name)
    group.settles(version=1)
    group.admin.delete_topics([group.coordination_topic])[group.coordination_topic].result(
        timeout=PATIENCE_S
    )
    group.start("c")
    group.settles(version=1, a=[0], b=[1, 2], c=[3, 4, 5])


def test_group_migrates_member_by_member_in_both_directions(group: ConfluentGroup) -> None:
    """With plain consumers in the group, each partition has one owner throughout."""
    group.publish(1, a=[0], b=[1, 2], c=[3, 4, 5])
    for name in "abc":
        group.start(f"plain-{name}", plain=True)
    group.settles()
    for name in "abc":
        group.leave(f"plain-{name}")
        group.start(name)
        group.settles()
    group.settles(version=1, a=[0], b=[1, 2], c=[3, 4, 5])
    for name in "abc":
        group.leave(name)
        group.start(f"plain-{name}", plain=True)
        group.settles()


def test_member_with_another_subscription_is_refused(group: ConfluentGroup) -> None:
    """The member gets an error and leaves; the others continue with the plan."""
    other = f"{group.name}-other"
    group.create_topic(other, 2)
    group.publish(1, a=[0], b=[1, 2, 3, 4, 5])
    for name in "ab":
        group.start(name)
    group.settles(version=1)
    odd = group.start("odd", topics=[group.topic, other])
    eventually(lambda: bool(odd.events("closed")), "it leaves")
    assert "equal subscriptions" in odd.events("refused")[0]["text"]
    group.gone.append(group.workers.pop("odd"))
    group.settles(version=1, a=[0], b=[1, 2, 3, 4, 5])


def test_group_settles_while_its_coordinator_moves(
    three_brokers: KafkaCluster, unique_name: str, tmp_path: Path
) -> None:
    """After the coordinator dies, the group follows a plan that is published meanwhile."""
    where = three_brokers.bootstrap_servers
    with running(ConfluentGroup(where, unique_name, tmp_path, replicas=3)) as group:
        group.publish(1, a=[0], b=[1, 2], c=[3, 4, 5])
        for name in "abc":
            group.start(name)
        group.settles(version=1, a=[0], b=[1, 2], c=[3, 4, 5])
        coordinator = group.coordinator()
        three_brokers.brokers[coordinator].kill()
        group.publish(2, a=[0, 1], b=[2, 3], c=[4, 5])
        group.settles(version=2, a=[0, 1], b=[2, 3], c=[4, 5])
        assert group.coordinator() != coordinator
        for name in "abc":
            group.leave(name)
        three_brokers.brokers[coordinator].start()
