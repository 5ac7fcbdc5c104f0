"""A member's part in roll calls of a group that is being converted, on a log in memory."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import pytest

from fairlead.followers.confluent.participant import Participant
from fairlead.followers.confluent.pin_listener import PinListener
from fairlead.followers.confluent.pin_log import Entry, Sent
from fairlead.followers.confluent.roll_call import Verdict
from fairlead.followers.core.clock import Clock
from fairlead.followers.core.follower import FollowOptions, new_cache
from fairlead.followers.core.plan_reader import PlanReader
from fairlead.wire.pins import Announcement, Partitions, Record
from tests.fairlead.followers.helpers import ScriptedSource
from tests.waiting import eventually


class MemoryLog:
    """A group's part of a pin topic, and what type the group is of."""

    def __init__(self, *, broker_assigns: bool) -> None:
        self.broken: str | None = None
        self.identity = "log"
        self.said: list[Record] = []
        self._read = 0
        self._broker_assigns = broker_assigns

    def append(self, record: Record) -> Sent:
        """Take a record."""
        self.said.append(record)
        return Sent()

    def read(self, timeout_s: float) -> list[Entry]:
        """Return what was said since."""
        del timeout_s
        new, self._read = self.said[self._read :], len(self.said)
        return [Entry(record) for record in new]

    def skip_to_end(self, timeout_s: float) -> None:
        """Do nothing."""

    def look(self, timeout_s: float, *, identity: bool) -> None:
        """Do nothing."""

    def partition_count(self, topic: str, timeout_s: float) -> int | None:
        """Return how many partitions every topic has."""
        del topic, timeout_s
        return 2

    def broker_assigns(self, timeout_s: float) -> bool:
        """Return what type the group is of."""
        del timeout_s
        return self._broker_assigns

    def close(self) -> None:
        """Do nothing."""


class MemoryTopic:
    """The way to a log in memory."""

    name = "pins"

    def __init__(self, log: MemoryLog) -> None:
        self._log = log

    def open(self, timeout_s: float) -> MemoryLog:
        """Return the log."""
        del timeout_s
        return self._log

    def check(self, timeout_s: float) -> None:
        """Find nothing wrong."""

    def create(self, timeout_s: float) -> None:
        """Do nothing."""


@contextmanager
def joined(log: MemoryLog) -> Iterator[Participant]:
    """Yield a member that listens to a log, about to join."""
    clock, rng, options = Clock(), random.Random(1), FollowOptions(rejoin_jitter_s=0.0)
    source = ScriptedSource()
    reader = PlanReader(
        "group",
        open_source=lambda: source,
        new_cache=partial(new_cache, "group", options),
        on_tick=lambda: None,
        clock=clock,
    )
    listener = PinListener("group", MemoryTopic(log), clock, rng)
    member = Participant(
        "group", "a", options, listener=listener, reader=reader, clock=clock, rng=rng
    )

    def listens() -> bool:
        member.step(0.0)
        return member.listen()

    eventually(listens, "it listens")
    try:
        yield member
    finally:
        member.close()


def given(member: Participant, generation: int, share: Partitions) -> Verdict | None:
    """Give a member a place; returns what it owns, if it knows at once."""
    member.begin(generation, "m", ("t",), share)
    verdict = member.step(0.0)
    if verdict is not None:
        member.settle(verdict)
    return verdict


def test_member_keeps_what_a_broker_gives_it_and_says_nothing() -> None:
    """Neither does it ask for another rebalance, nor miss what it is given next."""
    log = MemoryLog(broker_assigns=True)
    with joined(log) as member:
        for share in ({"t": (0,)}, {"t": (0, 1)}, {}):
            assert given(member, 7, share) == Verdict(share, listed=False)
            assert not member.rejoin_due()
        assert "the broker assigns" in (member.status(()).fallback_reason or "")
    assert not any(isinstance(record, Announcement) for record in log.said)


@pytest.mark.parametrize("share", [{"t": (0, 1)}, {}])
def test_who_is_given_another_place_in_a_generation_takes_it(share: Partitions) -> None:
    """Only a broker does that, whatever was known of the group's type."""
    log = MemoryLog(broker_assigns=False)
    with joined(log) as member:
        assert given(member, 7, {"t": (0,)}) is None  # it has announced itself
        assert any(isinstance(record, Announcement) for record in log.said)
        assert given(member, 7, share) == Verdict(share, listed=False)


def test_who_leaves_when_told_what_it_owns_stays_outside() -> None:
    """An application unsubscribes in its callback: the verdict is not acted on any more."""
    with joined(MemoryLog(broker_assigns=True)) as member:
        member.begin(7, "m", ("t",), {"t": (0,)})
        verdict = member.step(0.0)
        assert verdict is not None
        member.left(for_good=True)
        member.settle(verdict)
        assert not member.settled
        assert "in no group" in (member.status(()).fallback_reason or "")
