"""A plan follower without a Kafka client: its rebalance requests, its decisions and its status."""

import math
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from fairlead.errors import ConfigurationError
from fairlead.followers.core.follower import Follower, FollowOptions
from fairlead.followers.core.plan_cache import PlanRecord
from fairlead.followers.core.status import FollowerStatus, idle_reason
from fairlead.wire.members import (
    AssignmentNote,
    GroupMember,
    decode_assignment,
    decode_subscription,
    encode_note,
)
from fairlead.wire.record import NOTHING, Identity
from tests.fairlead.followers.helpers import ScriptedSource, make_plan, record, seen
from tests.records import unsigned
from tests.waiting import PATIENCE_S, eventually

OPTIONS = FollowOptions(read_timeout_s=0.01, rejoin_jitter_s=0.0)  # clock: no wait is needed


@dataclass
class Stage:
    """A running plan follower; `rejoins` lists the newest version at each rebalance request."""

    follower: Follower
    source: ScriptedSource
    rejoins: list[int | None] = field(default_factory=list)

    def tombstone(self, offset: int) -> None:
        """Withdraw the plan and wait until the plan follower knows it."""
        self.source.feed.put(record(offset, None))
        eventually(lambda: self.follower.status().latest_version is None, "the tombstone is read")

    def lead(self, heard: Identity = NOTHING) -> AssignmentNote:
        """Rebalance with this member as leader; another member reports that it has read `heard`."""
        self.follower.subscription("a")
        members = [GroupMember("a-1", ("t",)), GroupMember("b-1", ("t",), seen=heard)]
        _, user_data = self.follower.assign(members, {"t": 1})
        self.follower.assigned(user_data, generation=1)
        return decode_assignment(user_data)

    def follow_other_leader(self, note: AssignmentNote) -> None:
        """Rebalance with another member as leader."""
        self.follower.subscription("a")
        self.follower.assigned(encode_note(note), generation=1)

    def reads(self, offset: int, version: int) -> None:
        """Publish a plan; wait until the plan follower has read it and had time for a request."""
        self.source.feed.put(record(offset, version))
        eventually(
            lambda: self.follower.status().latest_version == version, f"version {version} is read"
        )
        ticks = self.source.reads
        eventually(lambda: self.source.reads > ticks + 1, "the follower has had its turn")


@contextmanager
def following(
    source: ScriptedSource | None = None, options: FollowOptions = OPTIONS
) -> Iterator[Stage]:
    """Run a plan follower that has read plan version 1 at offset 0."""
    source = source or ScriptedSource()
    source.feed.put(record(0, 1))
    source.ended.set()
    stage = Stage(Follower("group", options, lambda: source), source)
    stage.follower.rejoin_by(lambda: stage.rejoins.append(stage.follower.status().latest_version))
    try:
        eventually(lambda: stage.follower.status().caught_up, "version 1 is read")
        yield stage
    finally:
        stage.follower.close()


def test_leader_follows_the_plan_and_sends_its_version() -> None:
    """All members, including the leader, report the plan version that the leader has chosen."""
    with following() as stage:
        assert stage.lead() == AssignmentNote(plan_version=1, seen=seen(1), decided=seen(1))
        assert stage.follower.status().plan_version == 1


def test_each_newer_plan_causes_one_rebalance_request() -> None:
    """A member requests one rebalance for each newer plan, even if the leader does not adopt it."""
    with following() as stage:
        stage.follow_other_leader(AssignmentNote(plan_version=1, seen=seen(1)))
        stage.reads(4, version=2)
        stage.follow_other_leader(AssignmentNote(plan_version=1, seen=seen(1)))
        stage.reads(5, version=3)
        assert stage.rejoins == [2, 3]


def test_plan_that_the_leader_knows_causes_no_request() -> None:
    """If the leader has read version 2, a member that reads version 2 later makes no request."""
    with following() as stage:
        stage.follow_other_leader(AssignmentNote(plan_version=1, seen=seen(2)))
        stage.reads(4, version=2)
        assert stage.rejoins == []


def test_leader_with_an_older_plan_requests_a_rebalance_later() -> None:
    """The leader assigns by its older plan, and requests a rebalance once it has read the newer."""
    with following() as stage:
        note = stage.lead(heard=seen(2))
        assert note == AssignmentNote(plan_version=1, seen=seen(2), decided=seen(1))
        stage.reads(4, version=2)
        assert stage.rejoins == [2]


@pytest.mark.parametrize(("instance_id", "rejoins"), [("a", [2]), (None, [])])
def test_static_successor_of_such_a_leader_requests_the_rebalance(
    instance_id: str | None, rejoins: list[int]
) -> None:
    """A restarted leader requests a rebalance for a newer plan only if it is a static member."""
    with following() as stage:
        note = AssignmentNote(plan_version=1, seen=seen(2), decided=seen(1))
        stage.follower.subscription("a", instance_id)
        stage.follower.assigned(encode_note(note), generation=1)
        stage.reads(4, version=2)
        assert stage.rejoins == rejoins


def test_static_member_restarted_between_rounds_requests_the_second() -> None:
    """The member changes its subscription, because brokers ignore unchanged static members."""
    with following() as stage:
        note = AssignmentNote(plan_version=1, seen=seen(1), incomplete=True)
        stage.follower.subscription("a", "a")
        stage.follower.assigned(encode_note(note), generation=1)
        eventually(lambda: stage.rejoins == [1], "it asks for a rebalance")
        again = decode_subscription(stage.follower.subscription("a", "a"))
        assert again.again == 1


@pytest.mark.parametrize("user_data", [None, b""])
def test_brokers_assignment_causes_no_request(user_data: bytes | None) -> None:
    """If the broker computes assignments, members request no rebalance; the status shows why."""
    with following() as stage:
        stage.follower.subscription("a")
        stage.follower.assigned(user_data, generation=1)
        stage.reads(4, version=2)
        assert stage.rejoins == []
        status = stage.follower.status()
        assert (status.rule, status.plan_version) == ("range", None)
        assert "the broker assigns" in (status.fallback_reason or "")


def test_no_plan_is_followed_under_another_assignor() -> None:
    """If the group uses another assignor, the status has a reason instead of a plan version."""
    with following() as stage:
        stage.lead()
        stage.follower.subscription("a")
        status = stage.follower.status()
        assert status.plan_version is None
        assert "does not follow plans" in str(status.fallback_reason)


class HangingSource(ScriptedSource):
    """A plan source that a test can make hang; it records the threads that call it."""

    def __init__(self) -> None:
        super().__init__()
        self.askers: set[int] = set()
        self.hanging, self.hangs, self.released = (threading.Event() for _ in range(3))

    def read(self, timeout_s: float) -> list[PlanRecord]:
        """Return the next record; if the source hangs, wait until the test releases it."""
        self.askers.add(threading.get_ident())
        if self.hanging.is_set():
            self.hangs.set()
            self.released.wait(PATIENCE_S)
        return super().read(timeout_s)

    def at_end(self) -> bool:
        """Return whether all records are read, and record the calling thread."""
        self.askers.add(threading.get_ident())
        return super().at_end()


def test_leader_with_a_fresh_cache_sends_no_request(caplog: pytest.LogCaptureFixture) -> None:
    """A leader that has read all records decides without I/O, even if the broker hangs."""
    source = HangingSource()
    with following(source, FollowOptions(read_timeout_s=PATIENCE_S)) as stage:
        source.hanging.set()
        try:
            assert source.hangs.wait(PATIENCE_S)
            assert stage.lead().plan_version == 1
        finally:
            source.released.set()
    assert threading.get_ident() not in source.askers
    assert "was not read to its end" not in caplog.text


def test_status_follows_no_plan_outside_its_group() -> None:
    """After a consumer leaves its group or is closed, its status names no followed plan."""
    with following() as stage:
        assert "in no group" in str(stage.follower.status(outside=True).fallback_reason)
        stage.lead()
        assert stage.follower.status().plan_version == 1
        status = stage.follower.status(outside=True)
        assert (status.rule, status.plan_version) == ("undecided", None)
        assert "in no group" in str(status.fallback_reason)
        assert stage.follower.status(outside=True).since == status.since
        stage.follower.subscription("a")
        assert "in no group" not in str(stage.follower.status().fallback_reason)
        stage.lead()
        assert stage.follower.status().rule == "plan"


@pytest.mark.parametrize("name", ["read_timeout_s", "rejoin_jitter_s"])
@pytest.mark.parametrize("seconds", [-1.0, math.nan, math.inf, "5"])
def test_invalid_waiting_time_is_refused(name: str, seconds: Any) -> None:
    """The error names the option and is raised at construction, not during a rebalance."""
    with pytest.raises(ConfigurationError, match=name):
        FollowOptions(**{name: seconds})


def test_reason_of_an_idle_member() -> None:
    """A member is idle because of the plan, a member of the same name, or too few partitions."""
    plan = make_plan({"a": {"t": [0, 1]}, "b": {}}, partition_counts={"t": 2})
    assert "was made without 'c', and leaves no partition" in idle_reason(plan, "c")
    assert "gives 'b' no partitions" in idle_reason(plan, "b")
    assert "another member with this name reads it" in idle_reason(plan, "a")
    assert "fewer partitions than readers" in idle_reason(None, "a")


def test_status_has_plans_and_problems() -> None:
    """The status has the followed plan, the newest plan, and why the last record was skipped."""
    with following(options=FollowOptions(rejoin_jitter_s=None)) as stage:
        stage.lead()
        stage.reads(4, version=2)
        stage.source.feed.put(PlanRecord(5, b"group", b"garbage", tuple(unsigned(b"garbage"))))
        eventually(lambda: stage.follower.status().records_skipped == 1, "garbage is skipped")
        status = stage.follower.status([("t", 1), ("t", 0)])
    assert str(status.latest_problem).startswith("The plan is not UTF-8 JSON")
    assert status == FollowerStatus(
        group="group",
        plan_topic="fairlead.plans",
        owned={"t": (0, 1)},
        rule="plan",
        since=status.since,
        plan_version=1,
        fallback_reason=None,
        idle_reason=None,
        latest_version=2,
        latest_problem=status.latest_problem,
        records_skipped=1,
        caught_up=True,
        rebalances=1,
        rejoins_asked=0,
    )
    assert stage.rejoins == []
