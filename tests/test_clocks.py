"""No test depends on seconds."""

from pathlib import Path

import pytest

from tests.clocks import uses, uses_in
from tests.cost import costs_at_most

# clocks: examples of what is found


@pytest.mark.long
def test_every_use_of_a_clock_says_what_it_is_for() -> None:
    """And nothing asserts that something took less than so many seconds."""
    assert [str(use) for use in uses() if use.purpose is None] == []


@pytest.mark.parametrize(
    ("code", "purpose"),
    [
        ("began = time.monotonic(); assert time.monotonic() - began < 5", None),
        ("began = time.monotonic(); assert 5 > time.monotonic() - began", None),
        ("began = datetime.now(UTC); assert datetime.now(UTC) - began < SOON", None),
        ("at = time.time(); took = [time.time() - at]; assert min(took) < BOUND_S", None),
        ("at = time.time(); took = []; took.append(time.time() - at); assert took[0] < 5", None),
        ("at = time.monotonic(); assert time.monotonic() - at >= 5", "lower bound"),
        ("a = time.time(); b = time.time() - a; c = time.time() - a; assert b < c", "ratio"),
        ("at = datetime.now(UTC) - timedelta(days=1); assert at < datetime.now(UTC)", ...),
    ],
)
def test_what_is_asserted_of_elapsed_seconds_is_found(code: str, purpose: object) -> None:
    """An upper bound has no purpose, and no comment gives it one; dates may be compared."""
    found = uses_in(f"def test() -> None:\n    {code}  # clock: it is quick\n")
    compared = [use.purpose for use in found if any(sign in use.text for sign in "<>")]
    assert compared == ([] if purpose is ... else [purpose])


@pytest.mark.parametrize(
    ("code", "purpose"),
    [
        ("future.result(30)", None),
        ("future.result(30)  # clock: it does not come", "it does not come"),
        ("future.result(600)", "bound of minutes"),
        ("run(timeout=BOUND_S)", None),
        ("configure({'session.timeout.ms': 3000})", None),
        ("configure({'session.timeout.ms': 45000})", "bound of minutes"),
        ("time.sleep(1)", None),
        ("# clocks: how fast records come\ntime.sleep(1)", "how fast records come"),
        ("run('import time; time.sleep(600)')", "until it is ended"),
        ("from time import monotonic", None),
        ("plan.expires_at = datetime.now(UTC)", "dates data"),
    ],
)
def test_what_needs_no_comment_is_a_date_or_a_bound_of_minutes(
    code: str, purpose: str | None
) -> None:
    """Whatever else reads a clock or waits says what for."""
    assert [use.purpose for use in uses_in(f"BOUND_S = 20\n{code}\n", Path("code"))] == [purpose]


@pytest.mark.parametrize(("power", "passes"), [(1, True), (2, False)])
def test_cost_that_grows_faster_than_the_work_is_noticed(power: int, *, passes: bool) -> None:
    """Ten times as much in a hundred times as long is no ten times as long, on any machine."""
    spent = 0

    def spend(size: int) -> None:
        nonlocal spent
        spent += size**power

    def compare() -> None:
        costs_at_most(30, lambda: spend(1000), lambda: spend(100), clock=lambda: spent)

    if passes:
        compare()
    else:
        with pytest.raises(AssertionError, match="takes 100"):
            compare()
