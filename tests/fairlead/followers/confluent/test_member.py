"""Allowed transitions between a member's states, and limits on stored records."""

from collections.abc import Mapping
from typing import Any

import pytest

from fairlead.followers.confluent.generation import NEXT_OF_SHARE, Backlog, RangeShare
from fairlead.followers.confluent.member import TABLE, State
from fairlead.wire.agreement import MOST_PARTITIONS, Announcement
from tests.docs.blocks import DOCS


def drawn(steps: Mapping[Any, Any]) -> list[str]:
    """Return a line `states -> next states` for all states that have the same next states."""
    states: dict[str, list[str]] = {}
    for state, after in steps.items():
        if after:
            states.setdefault(", ".join(sorted(its.value for its in after)), []).append(state.value)
    return [f"{', '.join(names)} -> {after}" for after, names in states.items()]


def test_architecture_page_draws_the_allowed_steps() -> None:
    """The page shows all allowed transitions, and every state can be reached."""
    text = "\n".join([*drawn(TABLE), *drawn(NEXT_OF_SHARE)])
    assert f"```text\n{text}\n```" in (DOCS / "architecture.md").read_text()
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
