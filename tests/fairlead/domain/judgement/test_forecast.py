"""Lateness and utilisation at a horizon."""

import numpy as np
import pytest

from fairlead.domain.judgement.forecast import Outlook

NONE = np.zeros(2)
APART, TOGETHER = np.array([0, 1], np.int32), np.array([0, 0], np.int32)


def outlook(arrivals: list[float], backlog: list[float], deviation: float = 0.0) -> Outlook:
    """Return what is expected of two partitions and two members of 100 records a second."""
    late_s = np.array(backlog) / np.array(arrivals)
    return Outlook(
        np.array(arrivals), np.full(2, deviation), np.array(backlog), late_s, np.full(2, 100.0)
    )


def test_a_backlog_that_is_read_in_time_is_no_lateness() -> None:
    """60,000 records, 40 a second to spare, half an hour: 12,000 are left only if it is more."""
    assert outlook([60.0, 50.0], [60_000.0, 0.0]).forecast(APART, 1800.0).late_s == 0.0
    left = outlook([60.0, 50.0], [84_000.0, 0.0]).lateness(APART, 1800.0)
    assert left == pytest.approx([12_000 / 60.0, 0.0])


def test_nothing_grows_older_faster_than_time() -> None:
    """Ten times too much is at most as late as it was, and the horizon."""
    assert outlook([1000.0, 1.0], [0.0, 0.0]).lateness(APART, 1800.0).max() <= 1800.0


def test_nobodys_partition_counts_for_nobody() -> None:
    """A partition without an owner is in no member's forecast."""
    found = outlook([500.0, 50.0], [1e6, 0.0]).forecast(np.array([-1, 1], np.int32), 1800.0)
    assert (found.late_s, found.utilisation) == (0.0, 0.5)


def test_chance_excuses_where_arrivals_are_hardly_known() -> None:
    """105 % of a member is late for certain where that is known to a percent, else it is not."""
    for deviation, late in ((0.1, True), (5.0, False)):
        sure = outlook([60.0, 45.0], [0.0, 0.0], deviation).sure_lateness(TOGETHER, 1800.0)
        assert bool((sure > 60.0).any()) is late


def test_an_unknown_member_stays_as_late_as_it_is() -> None:
    """Nothing is known of its speed: nothing is said of its future."""
    found = Outlook(np.ones(2), NONE, np.array([50.0, 0.0]), np.array([50.0, 0.0]), NONE)
    assert found.lateness(APART, 1800.0).tolist() == [50.0, 0.0]
