"""The interval between samples."""

from datetime import UTC, datetime, timedelta

import pytest

from fairlead.archive import Taken
from fairlead.settings import SamplingSettings
from fairlead.workflows.sampling_interval import describe_cost, due, interval, wait_s

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
SETTINGS = SamplingSettings()


def taken(took_s: float = 0.5) -> Taken:
    return Taken(NOON, took_s, 10_000, 1_000_000)


def test_a_fleet_is_sampled_less_often() -> None:
    """Slow samples are taken less often: sampling takes at most a set share of the time."""
    assert interval(taken(), SETTINGS) == timedelta(minutes=1)
    apart = interval(taken(45.0), SETTINGS)
    assert 45.0 / apart.total_seconds() == pytest.approx(SETTINGS.share)
    assert "not 60 s" in describe_cost(taken(45.0), SETTINGS)
    assert "not" not in describe_cost(taken(), SETTINGS)


@pytest.mark.parametrize(
    ("seconds", "expected"), [(0, False), (49, False), (51, True), (55, True), (90, True)]
)
def test_a_sample_is_due_after_the_interval(seconds: int, expected: bool) -> None:  # noqa: FBT001
    """A sample is due half a tick before the interval ends, because the next tick is too late."""
    assert due(taken(), SETTINGS, NOON + timedelta(seconds=seconds)) is expected


def test_first_sample_is_due_at_once() -> None:
    """A sample is due at once if no sample was taken, or if the last one has a future time."""
    assert due(None, SETTINGS, NOON)
    assert due(taken(), SETTINGS, NOON - timedelta(days=1))
    assert wait_s(taken(), SETTINGS, NOON - timedelta(days=1)) == 0
