"""The policy's choice between candidates, and its reasons in words."""

from datetime import timedelta
from typing import Any

import pytest

from fairlead.plans.choice import Candidate, Choice, choose, cool_down, improvement
from fairlead.policy import Policy
from tests.fairlead.plans.plans import DAY

OBSERVED = {"lag_max": 160_000, "moved": 0, "placed": 0}


def candidate(assignor: str, lag_max: int, moved: int = 1, placed: int = 0) -> Candidate:
    return Candidate(assignor, {"lag_max": lag_max, "moved": moved, "placed": placed})


def policy(*assignors: str, **rules: Any) -> Policy:
    """Return a policy of assignors that need not exist."""
    rest = Policy(**{"choose": "lightest", **rules})
    return rest.model_copy(update={"assignors": assignors or ("a", "b", "c")})


def test_the_lightest_heaviest_member_wins() -> None:
    """Whatever the order of the policy and however many moves it takes."""
    choice = choose(policy(), [candidate("a", 120), candidate("b", 110, moved=9)], {"lag_max": 200})
    assert choice.candidate is not None
    assert (choice.outcome, choice.candidate.assignor) == ("plan", "b")


def test_fewer_moves_break_a_tie() -> None:
    """Two equally light candidates: the one that moves less."""
    choice = choose(policy(), [candidate("a", 110, moved=2), candidate("c", 110)], OBSERVED)
    assert choice.candidate is not None
    assert choice.candidate.assignor == "c"


def test_the_policys_order_breaks_the_last_tie() -> None:
    """Equal in all: the assignor that the policy names first, in whatever order rows come."""
    choice = choose(policy("b", "a"), [candidate("a", 110), candidate("b", 110)], OBSERVED)
    assert choice.candidate is not None
    assert choice.candidate.assignor == "b"


def test_first_takes_the_first_however_heavy() -> None:
    """`choose = "first"`: the others are there to be compared with."""
    first = policy("a", "b", choose="first")
    choice = choose(first, [candidate("b", 100_000), candidate("a", 110_000)], OBSERVED)
    assert choice.candidate is not None
    assert choice.candidate.assignor == "a"


def test_first_takes_the_next_where_the_first_failed() -> None:
    """One broken assignor does not leave a group unplanned."""
    first = policy("a", "b", choose="first")
    choice = choose(first, [Candidate("a", error="no"), candidate("b", 100_000)], OBSERVED)
    assert choice.candidate is not None
    assert choice.candidate.assignor == "b"


def test_a_candidate_that_the_policy_does_not_name_is_ignored() -> None:
    """The best candidate of another policy is none of this one's."""
    choice = choose(policy("a"), [candidate("a", 110_000), candidate("z", 1)], OBSERVED)
    assert choice.candidate is not None
    assert choice.candidate.assignor == "a"


def test_too_little_improvement_changes_nothing() -> None:
    """The reason says what would have been gained and what is asked for."""
    choice = choose(policy(min_improvement=0.05), [candidate("a", 159_200)], OBSERVED)
    assert choice.outcome == "no change"
    assert choice.reason == (
        "a: the heaviest member goes from 160,000 to 159,200 records (-0.5 %); "
        "the policy asks for 5.0 % less at least"
    )


def test_the_improvement_asked_for_is_enough() -> None:
    """The bound itself counts."""
    choice = choose(policy(min_improvement=0.25), [candidate("a", 120_000)], OBSERVED)
    assert choice.outcome == "plan"


def test_a_heavier_candidate_changes_nothing() -> None:
    """Also where the policy asks for no improvement at all."""
    choice = choose(policy(min_improvement=0.0), [candidate("a", 160_001)], OBSERVED)
    assert choice.outcome == "no change"


def test_a_partition_without_an_owner_forces_a_plan() -> None:
    """Nobody reads it: it must be placed, though the heaviest member gets heavier."""
    choice = choose(policy(), [candidate("a", 300_000, moved=0, placed=1)], OBSERVED)
    assert (choice.outcome, choice.reason) == (
        "plan",
        "a: 1 partition without an owner would get one",
    )


def test_what_the_group_has_already_is_no_plan() -> None:
    """Nothing moves: there is nothing to publish."""
    choice = choose(policy(min_improvement=0.0), [candidate("a", 160_000, moved=0)], OBSERVED)
    assert (choice.outcome, choice.reason) == (
        "no change",
        "a: the group already has this assignment",
    )


def test_without_lag_there_is_nothing_to_gain() -> None:
    """No division by zero, and no plan that moves partitions for nothing."""
    choice = choose(policy(), [candidate("a", 0)], {"lag_max": 0})
    assert (choice.outcome, choice.reason) == (
        "no change",
        "a: no member has any lag; the policy asks for 1.0 % less at least",
    )


def test_a_group_without_members_has_no_candidates() -> None:
    """Nothing to plan is a decision, not a failure."""
    choice = choose(policy(), [], {})
    assert (choice.outcome, choice.candidate) == ("no change", None)
    assert choice.reason == "the group has no members: there is nothing to plan"


def test_when_every_assignor_failed_each_says_why() -> None:
    """All errors are in the reason, in the policy's order."""
    choice = choose(
        policy("a", "b"), [Candidate("b", error="too big"), Candidate("a", error="boom")], OBSERVED
    )
    assert (choice.outcome, choice.reason) == (
        "failed",
        "every assignor of the policy failed: a: boom; b: too big",
    )


@pytest.mark.parametrize(
    ("before", "after", "share"),
    [(200, 150, 0.25), (200, 200, 0.0), (200, 300, -0.5), (0, 0, 0.0), (0, 5, float("-inf"))],
)
def test_improvement_is_a_share_of_what_was(before: int, after: int, share: float) -> None:
    """Halved is 0.5; from nothing to something is infinitely worse."""
    assert improvement({"lag_max": before}, {"lag_max": after}) == share


def test_candidates_over_the_budget_are_passed_over() -> None:
    """The lightest that moves no more than the policy allows; none such is no change."""
    offered = [candidate("a", 100, moved=9), candidate("b", 120, moved=3)]
    choice = choose(policy(max_moves=3), offered, OBSERVED)
    assert choice.candidate is not None
    assert choice.candidate.assignor == "b"
    none = choose(policy(max_moves=2), offered, OBSERVED)
    assert (none.outcome, none.reason) == (
        "no change",
        "every candidate moves more than 2 partitions",
    )


@pytest.mark.parametrize(
    ("placed", "passed", "outcome"),
    [
        (0, timedelta(minutes=59), "no change"),
        (0, timedelta(minutes=60), "plan"),
        (1, timedelta(minutes=59), "plan"),
    ],
)
def test_cooldown_holds_back_what_can_wait(placed: int, passed: timedelta, outcome: str) -> None:
    """Until it is over, unless a partition lacks an owner."""
    choice = Choice("plan", candidate("a", 1, placed=placed), "a: better")
    hourly = policy(cooldown=timedelta(hours=1))
    assert cool_down(choice, hourly, changed_at=DAY, now=DAY + passed).outcome == outcome


def test_cooldown_needs_something_to_count_from() -> None:
    """A group that never followed a plan gets its first one at once."""
    choice = Choice("plan", candidate("a", 1), "a: better")
    hourly = policy(cooldown=timedelta(hours=1))
    assert cool_down(choice, hourly, changed_at=None, now=DAY) == choice
