"""No test depends on seconds."""

from pathlib import Path

import pytest

from tests.clocks import uses, uses_in
from tests.cost import costs_at_most

# clocks: examples of what is found


@pytest.mark.long
def test_every_use_of_a_clock_says_what_it_is_for() -> None:
    """No test asserts an upper bound of seconds."""
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
def test_assertions_on_elapsed_seconds_are_found(code: str, purpose: object) -> None:
    """No comment allows an upper bound; dates may be compared."""
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
def test_only_dates_and_bounds_of_minutes_need_no_comment(code: str, purpose: str | None) -> None:
    """Every other use of a clock or wait needs a reason."""
    assert [use.purpose for use in uses_in(f"BOUND_S = 20\n{code}\n", Path("code"))] == [purpose]


@pytest.mark.parametrize(("power", "passes"), [(1, True), (2, False)])
def test_cost_that_grows_faster_than_the_work_is_noticed(power: int, *, passes: bool) -> None:
    """Ten times the work in a hundred times the time is noticed on any machine."""
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
