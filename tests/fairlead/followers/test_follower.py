"""A follower through rebalances, without a client: who asks for which plan, and how often."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from fairlead.followers.follower import Follower, FollowOptions
from fairlead.followers.members import (
    AssignmentNote,
    GroupMember,
    decode_assignment,
    encode_assignment,
)
from tests.fairlead.followers.helpers import ScriptedSource, eventually, record

OPTIONS = FollowOptions(read_timeout_s=0.01, rejoin_jitter_s=0.0)


@dataclass
class Stage:
    """A running follower, the topic it reads, and what it asked for."""

    follower: Follower
    source: ScriptedSource
    rejoins: list[int | None] = field(default_factory=list)

    def lead(self, heard: int = -1) -> AssignmentNote:
        """Rebalance with this member as leader; another member has seen the offset `heard`."""
        self.follower.subscription("a")
        members = [GroupMember("a-1", ("t",)), GroupMember("b-1", ("t",), seen_offset=heard)]
        _, user_data = self.follower.assign(members, {"t": 1})
        self.follower.assigned(user_data, generation=1)
        return decode_assignment(user_data)

    def be_led(self, note: AssignmentNote) -> None:
        """Rebalance with another member as leader."""
        self.follower.subscription("a")
        self.follower.assigned(encode_assignment(note), generation=1)

    def reads(self, offset: int, version: int) -> None:
        """Publish a plan and wait until the follower knows it, and has thought about it."""
        self.source.feed.put(record(offset, version))
        eventually(
            lambda: self.follower.status().latest_version == version, f"version {version} is read"
        )
        ticks = self.source.reads
        eventually(lambda: self.source.reads > ticks + 1, "the follower has had its turn")


@contextmanager
def following() -> Iterator[Stage]:
    """Run a follower that has read plan version 1 at offset 0."""
    source = ScriptedSource(record(0, 1))
    source.ended.set()
    stage = Stage(Follower("group", OPTIONS, lambda: source), source)
    stage.follower.rejoin_by(lambda: stage.rejoins.append(stage.follower.status().latest_version))
    try:
        eventually(lambda: stage.follower.status().caught_up, "version 1 is read")
        yield stage
    finally:
        stage.follower.close()


def test_leader_follows_the_plan_and_tells_its_version() -> None:
    """What the leader decides is what everybody, itself included, reports."""
    with following() as stage:
        assert stage.lead() == AssignmentNote(plan_version=1, seen_offset=0)
        assert stage.follower.plan_version == 1


def test_each_newer_plan_is_asked_for_once() -> None:
    """Asking did not help? Then asking again would not either."""
    with following() as stage:
        stage.be_led(AssignmentNote(plan_version=1, seen_offset=0))
        stage.reads(4, version=2)
        stage.be_led(AssignmentNote(plan_version=1, seen_offset=0))
        stage.reads(5, version=3)
        assert stage.rejoins == [2, 3]


def test_plan_that_the_group_has_heard_of_is_not_asked_for() -> None:
    """The leader knows that there is a newer plan: no member needs to tell it again."""
    with following() as stage:
        stage.be_led(AssignmentNote(plan_version=1, seen_offset=4))
        stage.reads(4, version=2)
        assert stage.rejoins == []


def test_leader_that_was_behind_asks_when_it_has_caught_up() -> None:
    """It decides in time with what it knows, and makes good for it once it has read more."""
    with following() as stage:
        assert stage.lead(heard=4) == AssignmentNote(plan_version=1, seen_offset=4)
        stage.reads(4, version=2)
        assert stage.rejoins == [2]


def test_nothing_is_followed_while_another_assignor_is_in_use() -> None:
    """A member that joins and is not assigned by this assignor follows no plan, and says why."""
    with following() as stage:
        stage.lead()
        stage.follower.subscription("a")
        status = stage.follower.status()
        assert status.plan_version is None
        assert "does not follow plans" in str(status.fallback_reason)
