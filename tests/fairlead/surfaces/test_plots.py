"""Plots are valid SVG of bounded size for any names and figures."""

import math
import xml.etree.ElementTree as ET
from datetime import UTC, datetime, timedelta

import pytest

from fairlead.domain.candidate_figures import SnapshotCandidate
from fairlead.domain.consumers import ConsumerChange
from fairlead.surfaces.plots import (
    consumers,
    frontier,
    over_time,
    owners_over_time,
)
from fairlead.surfaces.plots.charts import CONSUMERS

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def texts(svg: str) -> list[str]:
    """Return the texts of an SVG plot."""
    elements = ET.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")  # noqa: S314 - own
    return ["".join(element.itertext()) for element in elements]


def candidate(name: str, moved: int, forecast_time_lag_s: float | None) -> SnapshotCandidate:
    return SnapshotCandidate(
        name, {"moved": moved, "forecast_time_lag_s": forecast_time_lag_s, "topic_spread": 1.5}
    )


@pytest.mark.parametrize("name", ["$\\frac{$", "_a_", "<b>&\"'", "名前", "a\x01b\n", "x" * 500])
def test_names_are_drawn_as_they_are(name: str) -> None:
    """Names with markup or any script are drawn as text, and long names are shortened."""
    svg = consumers([ConsumerChange(name, 1, 10, 2, 5)])
    printed = "".join(sign if sign.isprintable() else "\N{REPLACEMENT CHARACTER}" for sign in name)
    assert (printed if len(printed) < 40 else "x…x") in "".join(texts(svg))
    assert len(svg) < 20_000


def test_heaviest_consumers_are_drawn() -> None:
    """Of many consumers, the plot shows those with most lag before or after the plan."""
    changes = [ConsumerChange(f"c{lag}", 1, lag, 1, 0) for lag in range(499)]
    drawn = texts(consumers([*changes, ConsumerChange("heir", 0, 0, 9, 9_999)]))
    assert {"heir", "c498", f"c{499 - CONSUMERS + 1}"} <= set(drawn)
    assert f"c{499 - CONSUMERS}" not in drawn
    assert f"Lag of each consumer: {CONSUMERS} of 500 consumers with most lag" in drawn


def test_frontier_names_every_candidate() -> None:
    """The plot names each candidate with known figures and marks the chosen one."""
    failed = SnapshotCandidate("broken", error="no")
    unknown = candidate("unknown", 1, None)
    candidates = [candidate("sticky", 0, 200.0), candidate("fair", 700, 120.0), failed, unknown]
    drawn = texts(frontier([(0, 200.0), (1, math.nan)], candidates, chosen="fair"))
    assert {
        "fair: 700 moved, worst topic 1.50 x (chosen)",
        "sticky: 0 moved, worst topic 1.50 x",
    } <= set(drawn)
    assert not any("broken" in text or "unknown" in text for text in drawn)


@pytest.mark.parametrize("name", ["<b>&\"'", "a\x01b", "\u202eb", "x" * 500])
def test_plots_in_markup_hold_any_name(name: str) -> None:
    """A plot can be embedded in a page whatever its names contain."""
    at = [NOON, NOON + timedelta(hours=1)]
    for svg in (
        over_time(at, {name: [1.0, None]}, name),
        owners_over_time(at, {name: [name, None]}, name),
    ):
        assert texts(svg)
        assert "<b>" not in svg
        assert not {"\x01", "\u202e"} & set("".join(texts(svg)))


def test_axis_ends_at_a_round_number_of_its_unit() -> None:
    """An axis for 11 minutes ends at 20, so that its ticks are whole minutes."""
    at = [NOON, NOON + timedelta(hours=1)]
    svg = over_time(at, {"late": [660.0, None]}, "", "{:.0f}".format, (60.0, 3600.0))
    assert texts(svg)[:3] == ["0", "600", "1200"]


def test_owners_are_drawn_as_long_as_they_hold() -> None:
    """An owner is one box for as long as it stays; a time without an owner is a gap."""
    at = [NOON + timedelta(hours=hour) for hour in range(4)]
    svg = owners_over_time(at, {"t-0": ["a", "a", None, "b"], "t-1": ["b"] * 4}, "owners")
    assert svg.count("<rect") == 3
