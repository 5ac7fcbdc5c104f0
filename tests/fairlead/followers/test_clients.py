"""Real consumers of each client library follow plans on a real broker."""

import gc
import threading
from collections.abc import Callable
from functools import partial

import pytest

from fairlead.errors import ConfigurationError
from fairlead.followers import aiokafka, kafka_python
from fairlead.kafka.gateway import KafkaGateway
from fairlead.settings import Settings
from tests.fairlead.followers.helpers import (
    CLIENTS,
    Fleet,
    Member,
    make_big_plan,
    spoilt,
)
from tests.records import PUBLIC, signed_plan
from tests.waiting import eventually

pytestmark = pytest.mark.kafka

FOUR = [0, 1, 2, 3]


def owned(members: dict[str, Member], topic: str) -> dict[str, list[int]]:
    return {name: member.owned.get(topic, []) for name, member in members.items()}


def settles(
    fleet: Fleet, members: dict[str, Member], version: int | None, **shares: list[int]
) -> None:
    """Wait until each member owns its share and follows this plan version."""

    def settled() -> bool:
        followed = {member.status().plan_version for member in members.values()}
        return owned(members, fleet.topics[0]) == shares and followed == {version}

    eventually(settled, f"version {version}, {shares}")


def test_members_report_their_racks(fleet: Fleet, settings: Settings) -> None:
    """Followers report their racks, although their client libraries do not; racks are optional."""
    fleet.publish(fleet.plan(1, a=[0], b=[1, 2, 3]))
    members = {"a": fleet.join("a", client_rack="r1"), "b": fleet.join("b")}
    settles(fleet, members, 1, a=[0], b=[1, 2, 3])
    with KafkaGateway(settings.kafka) as gateway:
        found = gateway.live_group(fleet.group).members
    assert {member.name: member.rack for member in found} == {"a": "r1", "b": None}


def test_untrusted_records_leave_the_last_good_plan(fleet: Fleet) -> None:
    """Untrusted records are skipped, and the next rebalance still follows the last good plan."""
    origin = fleet.origin
    fleet.send(*signed_plan(fleet.plan(1, a=[0], b=[1, 2, 3]), origin))
    members = {"a": fleet.join("a", public_keys=PUBLIC)}
    settles(fleet, members, 1, a=FOUR)
    status = members["a"].status
    asked = status().rejoins_asked

    def skips(count: int) -> bool:
        return status().records_skipped == count

    newer = fleet.plan(2, a=[3], b=[0, 1, 2])
    for skipped, (how, record) in enumerate(spoilt(newer, origin).items(), start=1):
        fleet.send(*record)
        eventually(partial(skips, skipped), f"{how}: skipped")
    members["b"] = fleet.join("b", public_keys=PUBLIC)
    settles(fleet, members, 1, a=[0], b=[1, 2, 3])
    assert status().rejoins_asked == asked


def test_plan_of_five_megabytes_is_adopted(fleet: Fleet) -> None:
    """The largest plans fit the client's fetch limits, and are read in time."""
    topic = fleet.topics[0]
    big = make_big_plan({"a": {topic: [0]}, "b": {topic: [1, 2, 3]}}, group=fleet.group, version=2)
    fleet.publish(fleet.plan(1, a=[0, 1], b=[2, 3]))
    members = {name: fleet.join(name) for name in ("a", "b")}
    settles(fleet, members, 1, a=[0, 1], b=[2, 3])
    fleet.publish(big)
    settles(fleet, members, 2, a=[0], b=[1, 2, 3])


def test_group_returns_to_range_after_a_tombstone(fleet: Fleet) -> None:
    """A withdrawn plan is no longer followed, although no member joins or leaves."""
    fleet.publish(fleet.plan(1, a=[0], b=[1, 2, 3]))
    members = {name: fleet.join(name) for name in ("a", "b")}
    settles(fleet, members, 1, a=[0], b=[1, 2, 3])
    fleet.send(None)
    settles(fleet, members, None, a=[0, 1], b=[2, 3])

    def withdrawn() -> bool:
        return {m.status().fallback_reason for m in members.values()} == {"the plan was withdrawn"}

    eventually(withdrawn, "both say that the plan was withdrawn")


def test_leader_assigns_topics_that_it_does_not_read(
    fleet: Fleet, kafka_topic: Callable[..., str]
) -> None:
    """The leader also assigns topics that it does not read itself."""
    other = kafka_topic(partitions=2)
    members = {"a": fleet.join("a"), "b": fleet.join("b", topics=[other])}
    expected = {"a": {fleet.topics[0]: FOUR}, "b": {other: [0, 1]}}
    eventually(
        lambda: {name: member.owned for name, member in members.items()} == expected,
        "each owns all partitions of its topic",
    )


def test_group_migrates_to_plans_and_back_member_by_member(fleet: Fleet) -> None:
    """The group uses the plan only if all members follow plans, otherwise `range`."""
    fleet.publish(fleet.plan(1, a=[0], b=[1, 2, 3]))
    topic = fleet.topics[0]

    def halves(first: Member, second: Member) -> None:
        def both() -> list[list[int]]:
            return sorted(member.owned.get(topic, []) for member in (first, second))

        eventually(lambda: both() == [[0, 1], [2, 3]], "range deals halves")

    plain = {name: fleet.join_plain(name, **fleet.range_only) for name in ("a", "b")}
    halves(*plain.values())
    plain["a"].stop()
    followers = {"a": fleet.join("a")}
    halves(followers["a"], plain["b"])
    reason = "some member of the group does not follow plans"
    eventually(lambda: reason in str(followers["a"].status().fallback_reason), reason)
    plain["b"].stop()
    followers["b"] = fleet.join("b")
    settles(fleet, followers, 1, a=[0], b=[1, 2, 3])
    followers["a"].stop()
    halves(fleet.join_plain("a", **fleet.range_only), followers["b"])


def test_clients_of_both_kinds_follow_one_plan(fleet: Fleet) -> None:
    """Static members of both libraries follow the plan, with a leader of either library."""
    fleet.publish(fleet.plan(1, a=[0], one=[1], two=[2, 3]))
    members = {"a": fleet.join("a")}  # the first member is the leader
    settles(fleet, members, 1, a=FOUR)
    for name, client in zip(("one", "two"), CLIENTS, strict=True):
        members[name] = fleet.join("same", client=client, group_instance_id=name)
    settles(fleet, members, 1, a=[0], one=[1], two=[2, 3])


@pytest.mark.parametrize("kind", [kafka_python.PlanConsumer, aiokafka.PlanConsumer])
def test_consumer_without_a_group_is_refused(kind: Callable[..., object]) -> None:
    """The constructor raises an error that names `group_id`, before it connects."""
    with pytest.raises(ConfigurationError, match="group_id"):
        kind("topic", bootstrap_servers="localhost:1")


@pytest.mark.parametrize("kind", [kafka_python.PlanAssignor, aiokafka.PlanAssignor])
def test_deleted_assignor_leaves_no_thread(kind: Callable[..., object], unique_name: str) -> None:
    """If an assignor is deleted without being closed, its thread ends."""
    thread = f"fairlead-plans-{unique_name}"
    nowhere: dict[str, str | int] = {"bootstrap_servers": "127.0.0.1:1"}
    if kind is kafka_python.PlanAssignor:
        nowhere["bootstrap_timeout_ms"] = 200
    assignor = kind(unique_name, nowhere)
    assert thread in {running.name for running in threading.enumerate()}
    del assignor
    gc.collect()
    eventually(
        lambda: thread not in {running.name for running in threading.enumerate()}, "its thread ends"
    )
