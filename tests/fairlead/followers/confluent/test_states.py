"""The states of a member whose group agrees through a log."""

import pytest

from fairlead.followers.confluent.states import NEXT, Phase, RangeShare, step
from tests.docs.blocks import DOCS


@pytest.mark.parametrize(
    ("state", "to"),
    [
        (RangeShare.KEPT, RangeShare.CEDED),
        (RangeShare.KEPT, RangeShare.GIVEN_UP),
        (RangeShare.GIVEN_UP, RangeShare.KEPT),
        (RangeShare.GIVEN_UP, RangeShare.CEDED),
        (Phase.OUTSIDE, Phase.SETTLED),
    ],
)
def test_step_that_might_give_a_partition_two_owners_is_refused(state: Phase, to: Phase) -> None:
    """What was kept is not ceded, what was ceded not taken back, and nobody settles outside."""
    with pytest.raises(AssertionError, match="does not follow"):
        step(state, to)


def test_every_state_is_reached_and_stays_what_it_is() -> None:
    """From the two that a generation and a member begin with."""
    reached = {Phase.OUTSIDE, RangeShare.OPEN}
    for state in (*Phase, *RangeShare):
        reached.update(NEXT[state])
        assert step(state, state) is state
    assert reached == {*Phase, *RangeShare}


def test_architecture_page_draws_the_steps_that_are_allowed() -> None:
    """The drawing is the table's own."""
    drawn = "\n".join(
        f"{state.value} -> {', '.join(to.value for to in NEXT[state])}"
        for state in NEXT
        if NEXT[state]
    )
    assert f"```text\n{drawn}\n```" in (DOCS / "architecture.md").read_text()
