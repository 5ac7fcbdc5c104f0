"""Steps that reconcile plan topic and database: from any state, the steps end and do no harm."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import pytest
from hypothesis import find, given
from hypothesis import strategies as st

from fairlead.domain.reconciliation import TABLE, Action, Lease, Objection, Situation, decide
from fairlead.wire.record import Kind

ENDS: Final = Objection("somebody left", ends=True)
WAITS: Final = Objection("it is rebalancing", passing=True)
KINDS: Final[Sequence[Kind | None]] = (None, "plan", "withdrawn")


@st.composite
def situations(draw: st.DrawFn) -> Situation:
    """Return a random possible state of a group."""
    on_its_way, approved = draw(st.sampled_from(KINDS)), draw(st.booleans())
    followed = "plan" if on_its_way == "withdrawn" else draw(st.sampled_from(KINDS))
    published = followed == "plan"
    sent = on_its_way == "plan" or (approved and on_its_way is None)
    return Situation(
        on_its_way=on_its_way,
        arrived=on_its_way is not None and draw(st.booleans()),
        approved=approved,
        objection=draw(st.sampled_from([None, ENDS, WAITS])) if sent else None,
        followed=followed,
        difference=draw(st.sampled_from(["", "followers refuse it"])) if followed else "",
        damage=draw(st.sampled_from(["", "", "the hash differs"])) if published else "",
        lease=draw(st.sampled_from(Lease)) if published else Lease.HOLDS,
        exists=draw(st.booleans()),
        withdrawal=draw(st.sampled_from(["", "too risky"])) if published else "",
    )


def after(group: Situation, action: Action) -> Situation:
    """Return the state of a group after a step, if the plan topic accepts the record."""
    settled = replace(
        group, on_its_way=None, arrived=False, objection=None, difference="", lease=Lease.HOLDS
    )
    if action is Action.RENEW:
        return replace(group, difference="", lease=Lease.HOLDS)
    if action is Action.DISCARD:
        return replace(settled, approved=group.approved and group.on_its_way is not None)
    if action is Action.SEND or (action is Action.FINISH and group.on_its_way == "plan"):
        left = group.approved and group.on_its_way == "plan"
        return replace(settled, approved=left, followed="plan", damage="", withdrawal="")
    if action in {Action.WITHDRAW, Action.FINISH}:
        return replace(settled, approved=False, followed="withdrawn", damage="", withdrawal="")
    return group


@given(situations())
def test_steps_come_to_an_end(group: Situation) -> None:
    """After at most five steps, there is nothing to do, or an alarm is raised."""
    for _ in range(5):
        action = decide(group).action
        group = after(group, action)
        if action in {Action.NOTHING, Action.ALARM}:
            return
    raise AssertionError(group)


@given(situations())
def test_no_invalid_plan_is_sent(group: Situation) -> None:
    """No unapproved plan or plan with an objection is sent; no damaged plan's lease is renewed."""
    action = decide(group).action
    if action is Action.SEND:
        assert group.on_its_way == "plan" or group.approved
        assert group.objection is None
        assert not group.arrived
    if action is Action.RENEW:
        assert not group.damage
        assert group.followed is not None
        assert group.on_its_way is None
    if action is Action.WITHDRAW:
        assert group.followed == "plan"


@given(situations())
def test_a_record_on_the_topic_is_stored_first(group: Situation) -> None:
    assert (decide(group).action is Action.FINISH) == (
        group.on_its_way is not None and group.arrived
    )


@given(situations())
def test_a_group_without_a_step_agrees_with_the_topic(group: Situation) -> None:
    """Nothing is left to do only if no plan is pending and the topic agrees with the database."""
    if decide(group).action is Action.NOTHING:
        assert (group.on_its_way, group.approved, group.difference) == (None, False, "")
        assert group.followed != "plan" or group.lease is Lease.HOLDS


@given(situations())
def test_an_alarm_says_why(group: Situation) -> None:
    step = decide(group)
    assert step.reason or step.action not in {Action.ALARM, Action.DISCARD}


@given(situations())
def test_a_waiting_plan_delays_no_lease_renewal(group: Situation) -> None:
    """While an approved plan waits, the published plan's lease is renewed."""
    waits = replace(group, on_its_way=None, arrived=False, approved=True, objection=WAITS)
    if decide(waits).action is Action.ALARM and not waits.damage and waits.exists:
        assert waits.followed != "plan" or waits.lease is Lease.HOLDS


@pytest.mark.parametrize("row", range(len(TABLE)))
def test_every_row_is_reached(row: int) -> None:
    found = find(
        situations(),
        lambda group: next(n for n, (applies, *_) in enumerate(TABLE) if applies(group)) == row,
    )
    assert decide(found).action is TABLE[row][1]
