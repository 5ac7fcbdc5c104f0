"""Plots are well-formed, reproducible and bounded for any names and figures."""

import xml.etree.ElementTree as ET
from datetime import UTC, datetime, timedelta

import pytest

from fairlead.domain.candidate_figures import SnapshotCandidate
from fairlead.surfaces.plots import frontier, over_time, owners_over_time

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def texts(svg: str) -> list[str]:
    """Return the texts of a plot; fails if it is no XML."""
    elements = ET.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")  # noqa: S314 - own
    return ["".join(element.itertext()) for element in elements]


@pytest.mark.parametrize("name", ["$\\frac{$", "_a_", "<b>&\"'", "名前", "a\x01b\n", "x" * 500])
def test_names_are_drawn_as_text(name: str) -> None:
    """Names may have markup or any script; long names are shortened."""
    metrics = {"moved": 4, "forecast_time_lag_s": 20.0, "topic_spread": 1.5}
    svg = frontier([], [SnapshotCandidate(name, metrics)], chosen=None)
    printed = "".join(sign if sign.isprintable() else "\N{REPLACEMENT CHARACTER}" for sign in name)
    assert (printed if len(printed) < 40 else "x…x") in "".join(texts(svg))
    assert len(svg) < 20_000


@pytest.mark.parametrize("name", ["<b>&\"'", "a\x01b", "\u202eb", "x" * 500])
def test_plots_in_markup_hold_any_name(name: str) -> None:
    """A name in a plot can neither end the markup nor change the text's direction."""
    at = [NOON, NOON + timedelta(hours=1)]
    for svg in (
        over_time(at, {name: [1.0, None]}, name),
        owners_over_time(at, {name: [name, None]}, name),
    ):
        assert texts(svg)
        assert "<b>" not in svg
        assert not {"\x01", "\u202e"} & set("".join(texts(svg)))
