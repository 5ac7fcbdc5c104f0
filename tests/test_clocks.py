"""Tests must not fail because a machine is slow."""

import pytest

from tests.clocks import uses


@pytest.mark.long
def test_every_use_of_a_clock_has_a_purpose() -> None:
    """A rule of `tests.clocks` or a comment gives the purpose of each use of a clock."""
    assert [str(use) for use in uses() if use.purpose is None] == []
