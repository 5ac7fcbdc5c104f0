"""No test depends on seconds."""

import pytest

from tests.clocks import uses


@pytest.mark.long
def test_every_use_of_a_clock_says_what_it_is_for() -> None:
    """No test asserts an upper bound of seconds."""
    assert [str(use) for use in uses() if use.purpose is None] == []
