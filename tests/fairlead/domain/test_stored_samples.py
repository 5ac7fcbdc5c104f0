"""Stored samples of a group, and the history made of them."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest

from fairlead.domain.stored_samples import GroupHistory, LastStored, StoredSample


def sample(minute: int, forecast_time_lag_s: float | None) -> StoredSample:
    """Return a sample of one partition, which member `a` owns."""
    return StoredSample(
        at=datetime(2026, 1, 1, 12, minute, tzinfo=UTC),
        digest=1,
        forecast_time_lag_s=forecast_time_lag_s,
        utilisation=None if forecast_time_lag_s is None else 0.5,
        group_type="classic",
        protocol="range",
        topics=["t"],
        counts=[1],
        members=["a"],
        owner=[0],
        lag=[7.0],
        arrival_rate=[0.0 if forecast_time_lag_s is None else 3.0],
        behind_s=[0.0],
        capacity_share=[0.5],
    )


@pytest.mark.parametrize(
    ("minute", "changes", "stored"),
    [
        (14, {}, False),
        (15, {}, True),
        (14, {"digest": 2}, True),
        (14, {"forecast_time_lag_s": None}, False),
    ],
)
def test_samples_that_differ_are_stored(
    minute: int, changes: dict[str, Any], *, stored: bool
) -> None:
    """A sample is stored if values have changed, if it has the first forecast, or after 15 min."""
    newest = replace(sample(minute, 2.0), **changes)
    last = LastStored(sample(0, 2.0).at, digest=1, known=True)
    assert newest.is_news(last) == stored
    assert newest.is_news(None)
    assert newest.is_news(last._replace(known=False)) == (
        stored or newest.forecast_time_lag_s is not None
    )


def test_history_has_no_values_without_a_forecast() -> None:
    """Before a group's first forecast, its history has lag, but NaN for rates and shares."""
    history = GroupHistory.of([sample(0, None), sample(5, 2.0)])
    assert history.lag.tolist() == [[7.0], [7.0]]
    shares = history.by_owner(history.capacity_share)
    for values in (history.arrival_rate, shares, history.by_owner(history.behind_s)):
        assert np.isnan(values).tolist() == [[True], [False]]
