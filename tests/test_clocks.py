"""No test fails because a machine is slow."""

import pytest

from tests.clocks import uses


@pytest.mark.long
def test_every_use_of_a_clock_says_what_it_is_for() -> None:
    """Each use of a clock has a purpose, and no test asserts an upper bound of seconds."""
    assert [str(use) for use in uses() if use.purpose is None] == []
