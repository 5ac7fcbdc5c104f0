"""Allowed transitions between a member's states, and limits on stored records."""

import pytest

from fairlead.followers.confluent.generation import NEXT_OF_SHARE, Backlog, RangeShare
from fairlead.followers.confluent.member import TABLE, State
from fairlead.wire.agreement import MOST_PARTITIONS, Announcement


def test_every_state_can_be_reached() -> None:
    """Each state of a member is in the table of transitions, and some transition leads to it."""
    assert {*State} == {*TABLE} == frozenset[State]().union(*TABLE.values())


def test_an_abandoned_share_stays_abandoned() -> None:
    """The states "kept" (the share from `range`) and "abandoned" (others may own it) are final."""
    assert not NEXT_OF_SHARE[RangeShare.KEPT]
    assert not NEXT_OF_SHARE[RangeShare.ABANDONED]


@pytest.mark.parametrize(("named", "kept"), [(1, 10_000), (MOST_PARTITIONS, 10)])
def test_records_before_a_generation_are_bounded(named: int, kept: int) -> None:
    """Stored records are limited in number, and in the number of partitions that they list."""
    backlog, record = Backlog(), Announcement(1, "m", "a", ("t",), {"t": tuple(range(named))})
    for _ in range(20_000):
        backlog.add(record, 0)
    assert len(list(backlog)) == kept
    assert not backlog.whole
    backlog.clear()
    assert backlog.whole
