"""Figures of candidate assignments."""

from dataclasses import fields
from typing import Any

import pytest

from assignors.metrics import Metrics
from fairlead.domain.candidate_figures import METRICS, improvement


def test_every_metric_of_an_assignment_is_stored() -> None:
    """METRICS lists the fields of `Metrics`; commands can import METRICS without numpy."""
    assert tuple(field.name for field in fields(Metrics)) == METRICS


@pytest.mark.parametrize(
    ("before", "after", "share"),
    [
        (200.0, 150.0, 0.25),
        (200.0, 250.0, -0.25),
        (0.0, 0.0, 0.0),
        (0.0, 1.0, float("-inf")),
        (None, 1.0, None),
        (1.0, None, None),
    ],
)
def test_improvement_is_a_share_of_the_forecast(before: Any, after: Any, share: Any) -> None:
    """The improvement is None if a forecast is missing, and 0 if neither has a time lag."""
    assert improvement({"forecast_time_lag_s": before}, {"forecast_time_lag_s": after}) == share
