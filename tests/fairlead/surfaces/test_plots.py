"""Plots in SVG are well-formed for any name."""

import xml.etree.ElementTree as ET
from datetime import UTC, datetime, timedelta

import pytest

from fairlead.surfaces.plots import over_time, owners_over_time

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def texts(svg: str) -> list[str]:
    """Return the texts of a plot; raise an error if the plot is not well-formed XML."""
    elements = ET.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")  # noqa: S314 - own
    return ["".join(element.itertext()) for element in elements]


@pytest.mark.parametrize("name", ["<b>&\"'", "a\x01b", "\u202eb", "x" * 500])
def test_plots_in_markup_hold_any_name(name: str) -> None:
    """No name in a plot can end the markup or reverse the direction of text."""
    at = [NOON, NOON + timedelta(hours=1)]
    for svg in (
        over_time(at, {name: [1.0, None]}, name),
        owners_over_time(at, {name: [name, None]}, name),
    ):
        assert texts(svg)
        assert "<b>" not in svg
        assert not {"\x01", "\u202e"} & set("".join(texts(svg)))
