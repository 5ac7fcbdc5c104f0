"""Plots are well-formed, reproducible and bounded, whatever the names and figures are."""

import math
import xml.etree.ElementTree as ET
from datetime import UTC, datetime, timedelta

import pytest

from fairlead.domain.candidate_figures import SnapshotCandidate
from fairlead.domain.consumers import ConsumerChange
from fairlead.surfaces.plots import (
    as_markdown,
    consumers,
    frontier,
    lag_history,
    over_time,
    owners_over_time,
    sparkline,
)
from fairlead.surfaces.plots.charts import CONSUMERS, POINTS

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def texts(svg: str) -> list[str]:
    """Return the texts of a plot; fails where it is no XML."""
    elements = ET.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")  # noqa: S314 - own
    return ["".join(element.itertext()) for element in elements]


def candidate(name: str, moved: int, late_s: float | None) -> SnapshotCandidate:
    return SnapshotCandidate(name, {"moved": moved, "late_s": late_s, "topic_spread": 1.5})


@pytest.mark.parametrize("name", ["$\\frac{$", "_a_", "<b>&\"'", "名前", "a\x01b\n", "x" * 500])
def test_names_are_drawn_as_they_are(name: str) -> None:
    """Markup, dollar signs and letters of any script are text; long names keep their ends."""
    svg = consumers([ConsumerChange(name, 1, 10, 2, 5)])
    printed = "".join(sign if sign.isprintable() else "\N{REPLACEMENT CHARACTER}" for sign in name)
    assert (printed if len(printed) < 40 else "x…x") in "".join(texts(svg))
    assert texts(sparkline([1, 2], name))
    assert len(svg) < 20_000


def test_equal_input_gives_equal_svg() -> None:
    """Nothing of the clock or of chance is in a plot."""
    changes = [ConsumerChange("a", 1, 10, 2, 5)]
    candidates = [candidate("fair", 3, 120.0)]
    assert consumers(changes) == consumers(changes)
    first, second = (frontier([(0, 150.0)], candidates, chosen="fair") for _ in range(2))
    assert first == second
    assert lag_history([NOON], [2.0], [1.0]) == lag_history([NOON], [2.0], [1.0])


def test_heaviest_consumers_are_drawn() -> None:
    """Of many consumers the heaviest are drawn, before or after, and the title says so."""
    changes = [ConsumerChange(f"c{lag}", 1, lag, 1, 0) for lag in range(499)]
    drawn = texts(consumers([*changes, ConsumerChange("heir", 0, 0, 9, 9_999)]))
    assert {"heir", "c498", f"c{499 - CONSUMERS + 1}"} <= set(drawn)
    assert f"c{499 - CONSUMERS}" not in drawn
    assert f"Lag of each consumer: the heaviest {CONSUMERS} of 500 consumers" in drawn


def test_frontier_names_every_candidate() -> None:
    """The chosen one is marked; candidates that failed, and unknown figures, are left out."""
    failed = SnapshotCandidate("broken", error="no")
    unknown = candidate("unknown", 1, None)
    candidates = [candidate("sticky", 0, 200.0), candidate("fair", 700, 120.0), failed, unknown]
    drawn = texts(frontier([(0, 200.0), (1, math.nan)], candidates, chosen="fair"))
    assert {
        "fair: 700 moved, worst topic 1.50 x (chosen)",
        "sticky: 0 moved, worst topic 1.50 x",
    } <= set(drawn)
    assert not any("broken" in text or "unknown" in text for text in drawn)


def test_long_history_keeps_its_peaks() -> None:
    """However many times there are, a plot has a bounded number of points."""
    at = [NOON + timedelta(minutes=minute) for minute in range(50 * POINTS)]
    lags = [5.0] * len(at)
    peaks = lags.copy()
    peaks[777] = 9_000.0
    assert len(lag_history(at, peaks, lags)) < 100_000
    assert any(text.startswith("8 k") for text in texts(lag_history(at, peaks, lags)))


@pytest.mark.parametrize("values", [[], [0.0], [7.0] * 3, [None, 2.0, math.nan, 3.0], [None]])
def test_empty_constant_and_unknown_values(values: list[float | None]) -> None:
    """What cannot be drawn leaves a gap, never an error or a warning."""
    at = [NOON + timedelta(hours=hour) for hour in range(len(values))]
    assert texts(lag_history(at, values, values[::-1]))
    assert "nan" not in sparkline(values, "lag")


def test_nothing_to_draw_is_said() -> None:
    """A group without consumers or candidates has a plot that says so."""
    assert texts(consumers([])) == ["no consumers"]
    assert texts(frontier([], [], chosen=None)) == ["no candidate has a forecast"]


def test_sparkline_shows_in_place() -> None:
    """The Dagster UI shows markdown of under 1,000 characters without a further click."""
    values = [float(place * 7919 % 104_729) for place in range(500)]
    for label in ("total lag 12,345,678 records", "&" * 500, "\N{PILE OF POO}" * 500):
        assert len(as_markdown(sparkline(values, label), label)) < 1_000


def test_markdown_keeps_its_form() -> None:
    """An alternative text cannot end the image it describes."""
    markdown = as_markdown("<svg/>", "a](http://b) \n[c")
    assert markdown.startswith("![a  http:  b    c](data:image/svg+xml;base64,")


@pytest.mark.parametrize("name", ["<b>&\"'", "a\x01b", "\u202eb", "x" * 500])
def test_plots_in_markup_hold_any_name(name: str) -> None:
    """They stand in a page as they are: a name can neither end them nor turn its text around."""
    at = [NOON, NOON + timedelta(hours=1)]
    for svg in (
        over_time(at, {name: [1.0, None]}, name),
        owners_over_time(at, {name: [name, None]}, name),
    ):
        assert texts(svg)
        assert "<b>" not in svg
        assert not {"\x01", "\u202e"} & set("".join(texts(svg)))


def test_axis_ends_at_a_round_number_of_its_unit() -> None:
    """Eleven minutes are drawn up to twenty, and half of it is whole, too."""
    at = [NOON, NOON + timedelta(hours=1)]
    svg = over_time(at, {"late": [660.0, None]}, "", "{:.0f}".format, (60.0, 3600.0))
    assert texts(svg)[:3] == ["0", "600", "1200"]


def test_owners_are_drawn_as_long_as_they_hold() -> None:
    """An owner who stays is one box; nobody is none, and a gap between."""
    at = [NOON + timedelta(hours=hour) for hour in range(4)]
    svg = owners_over_time(at, {"t-0": ["a", "a", None, "b"], "t-1": ["b"] * 4}, "owners")
    assert svg.count("<rect") == 3
