"""How confluent-kafka members agree on an assignment, on a real broker.

Members join and leave, or the coordination topic is deleted. At the end of each test every
partition has exactly one owner, and no partition ever had two owners at the same time.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from fairlead.sandbox import Services
from tests.fairlead.followers.confluent.group import ConfluentGroup, running
from tests.waiting import PATIENCE_S, eventually

pytestmark = pytest.mark.kafka

OURS = "what the members share"


@pytest.fixture
def group(services: Services, unique_name: str, tmp_path: Path) -> Iterator[ConfluentGroup]:
    """Return a group without members that reads one topic of six partitions."""
    with running(ConfluentGroup(services.bootstrap_servers, unique_name, tmp_path)) as group:
        yield group


def test_member_with_another_secret_is_ignored(group: ConfluentGroup) -> None:
    """Members ignore a member with another secret; this member keeps its share from `range`."""
    group.secret = OURS
    group.publish(1, a=[3, 4, 5], b=[0, 1, 2])
    group.start("a")
    group.start("b")
    group.settles(version=1, a=[3, 4, 5], b=[0, 1, 2])
    group.secret = "-".join(reversed(OURS))
    group.start("stranger")
    # `range` assigns 0 and 1 to a, 2 and 3 to b, 4 and 5 to stranger.
    group.settles(a=[3], b=[0, 1, 2], stranger=[4, 5])
    group.leave("stranger")
    group.settles(version=1, a=[3, 4, 5], b=[0, 1, 2])


def test_group_recreates_a_deleted_coordination_topic(group: ConfluentGroup) -> None:
    """After the deletion, a new member joins, and all members follow the plan."""
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
    """Each partition has one owner while members switch to following plans, and back again."""
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
    """The member gets an error and leaves the group; the others follow the plan."""
    other = f"{group.name}-other"
    group.create_topic(other, 2)
    group.publish(1, a=[0], b=[1, 2, 3, 4, 5])
    for name in "ab":
        group.start(name)
    group.settles(version=1)
    odd = group.start("odd", topics=[group.topic, other])
    eventually(lambda: bool(odd.events("closed")), "it leaves")
    assert "must subscribe to the same topics" in odd.events("refused")[0]["text"]
    group.gone.append(group.workers.pop("odd"))
    group.settles(version=1, a=[0], b=[1, 2, 3, 4, 5])
