"""Forecasts of time lag and utilisation at a horizon."""

import numpy as np
import pytest

from fairlead.domain.analysis.forecast import Outlook

NONE = np.zeros(2)
APART, TOGETHER = np.array([0, 1], np.int32), np.array([0, 0], np.int32)


def outlook(arrivals: list[float], backlog: list[float], deviation: float = 0.0) -> Outlook:
    """Return the outlook of two partitions; each of two members can read 100 records a second."""
    time_lag_s = np.array(backlog) / np.array(arrivals)
    return Outlook(
        np.array(arrivals), np.full(2, deviation), np.array(backlog), time_lag_s, np.full(2, 100.0)
    )


def test_a_backlog_that_is_read_in_time_is_no_time_lag() -> None:
    """At 40/s of spare capacity, a backlog of 60,000 takes less than half an hour, 84,000 more."""
    assert outlook([60.0, 50.0], [60_000.0, 0.0]).forecast(APART, 1800.0).time_lag_s == 0.0
    left = outlook([60.0, 50.0], [84_000.0, 0.0]).forecast_time_lag(APART, 1800.0)
    assert left == pytest.approx([12_000 / 60.0, 0.0])


def test_time_lag_stays_until_the_backlog_is_read() -> None:
    """At 100 % utilisation, a partition's time lag does not change.

    `total_time_lag` multiplies a member's average time lag by the member's number of partitions.
    """
    time_lag_s = np.array([138.0, 0.0])
    group = Outlook(
        np.array([60.0, 40.0]), NONE, np.array([2000.0, 0.0]), time_lag_s, np.full(2, 100.0)
    )
    assert group.forecast_time_lag(TOGETHER, 1800.0) == pytest.approx([138.0, 0.0])
    assert group.total_time_lag(TOGETHER, 1800.0) == pytest.approx([2 * 20.0, 0.0])


def test_time_lag_grows_no_faster_than_time() -> None:
    """Even if ten times the capacity arrives, the time lag grows by no more than the horizon."""
    assert outlook([1000.0, 1.0], [0.0, 0.0]).forecast_time_lag(APART, 1800.0).max() <= 1800.0


def test_a_partition_without_an_owner_never_catches_up() -> None:
    """An unowned partition's time lag grows by the horizon; utilisation excludes the partition."""
    forecast = outlook([500.0, 50.0], [1e6, 0.0]).forecast(np.array([-1, 1], np.int32), 1800.0)
    assert (forecast.time_lag_s, forecast.utilisation) == (3800.0, 0.5)
    assert (forecast.catch_up_s, forecast.catch_up_between_s) == (None, (None, None))


def test_uncertain_arrivals_give_no_certain_overload() -> None:
    """At 105 % utilisation, a member certainly falls behind only if arrival rates are precise."""
    for deviation, late in ((0.1, True), (5.0, False)):
        sure = outlook([60.0, 45.0], [0.0, 0.0], deviation).sure_time_lag(TOGETHER, 1800.0)
        assert bool((sure > 60.0).any()) is late


def test_a_member_of_unknown_capacity_keeps_its_time_lag() -> None:
    outlook_ = Outlook(np.ones(2), NONE, np.array([50.0, 0.0]), np.array([50.0, 0.0]), NONE)
    assert outlook_.forecast_time_lag(APART, 1800.0).tolist() == [50.0, 0.0]


def test_time_to_catch_up_has_an_interval() -> None:
    """At 40/s of spare capacity, a group catches up on 60,000 records in 25 min minus 90 s.

    The last 3,600 records, which take 90 s, are within the objective of a minute. The bounds of the
    interval are computed from capacities that are 13 % higher and lower.
    """
    forecast = outlook([60.0, 50.0], [60_000.0, 0.0]).forecast(APART, 1800.0)
    assert forecast.catch_up_s == pytest.approx(60_000 / 40 - 90)
    low, high = forecast.catch_up_between_s
    assert low == pytest.approx((60_000 - 60 * 60) / (1.13 * 100 - 60), rel=0.01)
    assert high == pytest.approx((60_000 - 60 * 60) / (0.87 * 100 - 60), rel=0.01)


def test_a_member_over_capacity_never_catches_up() -> None:
    """Above 100 % utilisation, a member never catches up; at 95 %, the time has no upper bound."""
    well, ill = outlook([60.0, 50.0], [600.0, 0.0]), outlook([120.0, 50.0], [60_000.0, 0.0])
    assert well.forecast(APART, 1800.0).catch_up_s == 0.0
    assert ill.forecast(APART, 1800.0).catch_up_s is None
    close = outlook([95.0, 50.0], [60_000.0, 0.0]).forecast(APART, 1800.0)
    assert close.catch_up_s is not None
    assert close.catch_up_between_s[1] is None


def test_catching_up_ends_with_the_last_partition() -> None:
    """Of two partitions, the one that is an hour behind determines the time to catch up."""
    none = np.zeros(2)
    waiting, time_lag_s = np.array([108_000.0, 0.0]), np.array([3600.0, 0.0])
    group = Outlook(np.array([30.0, 30.0]), none, waiting, time_lag_s, np.full(2, 100.0))
    catch_up_s = group.forecast(TOGETHER, 1800.0).catch_up_s
    assert catch_up_s == pytest.approx(108_000 / 40, rel=0.01)
