"""The plot of a review: gain by moves.

Belongs here: figures in, SVG out. Does not: style (`style`), plots over time (`over_time`).
"""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from fairlead.common.words import times
from fairlead.domain.candidate_figures import SnapshotCandidate
from fairlead.surfaces.plots.style import GREY, drawing, shortened, svg_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Metrics = Mapping[str, Any]

_MARKERS: Final = "osD^vPX*"
_LINEAR: Final = 10


def frontier(
    points: Sequence[tuple[int, float]],
    candidates: Sequence[SnapshotCandidate],
    *,
    chosen: str | None,
) -> str:
    """Draw the forecast time lag over the number of partitions moved; "" without any forecast.

    Parameters
    ----------
    points
        The curve of an assignor that computes the effect of each number of moves; may be empty.
    candidates
        Drawn as markers, except those that failed or have no forecast.
    chosen
        The chosen assignor, whose marker is a ring.

    Examples
    --------
    >>> metrics = {"moved": 4, "forecast_time_lag_s": 20.0, "topic_spread": 1.5}
    >>> sticky = SnapshotCandidate("sticky", metrics)
    >>> "sticky: 4 moved" in frontier([(0, 200.0)], [sticky], chosen=None)
    True
    """
    curve = [point for point in points if _known(point[0]) and _known(point[1])]
    placed = [
        (candidate.assignor, candidate.metrics)
        for candidate in candidates
        if candidate.metrics
        and _known(candidate.metrics["moved"])
        and _known(candidate.metrics["forecast_time_lag_s"])
    ]
    if not curve and not placed:
        return ""
    from matplotlib.figure import Figure  # noqa: PLC0415 - see `style`
    from matplotlib.ticker import EngFormatter, MaxNLocator  # noqa: PLC0415 - the same

    with drawing():
        figure = Figure(figsize=(7.0, 3.6 + 0.2 * len(placed)), layout="constrained")
        axes = figure.subplots()
        if len(curve) > 1:
            moves, forecast_time_lag_s = zip(*curve, strict=True)
            style: Any = {"color": GREY, "label": "sticky-lag-aware, move by move"}
            axes.step(moves, forecast_time_lag_s, where="post", **style)
        _mark(axes, placed, chosen)
        _moves(
            axes,
            max([moves for moves, _ in curve] + [candidate["moved"] for _, candidate in placed]),
        )
        axes.yaxis.set_major_locator(MaxNLocator(nbins=6, integer=True, min_n_ticks=1))
        axes.yaxis.set_major_formatter(EngFormatter())
        axes.margins(0.05, 0.12)
        axes.set_xlabel("partitions moved")
        axes.set_ylabel("forecast time lag (s)")
        axes.set_title("Forecast by partitions moved")
        axes.grid()
        figure.legend(loc="outside lower center", markerscale=0.7)
        return svg_text(figure)


def _mark(axes: "Axes", placed: Sequence[tuple[str, Metrics]], chosen: str | None) -> None:
    """Mark candidates by moves and time lag, the chosen one as a ring around the others."""
    for place, (assignor, metrics) in enumerate(
        sorted(placed, key=lambda candidate: candidate[1]["forecast_time_lag_s"])
    ):
        is_chosen = assignor == chosen
        axes.plot(
            [metrics["moved"]],
            [metrics["forecast_time_lag_s"]],
            color=f"C{place}",
            linestyle="none",
            marker=_MARKERS[place % len(_MARKERS)],
            # Smaller ones on top: several assignors may share a point.
            markersize=14 if is_chosen else max(10 - place, 6),
            fillstyle="none" if is_chosen else "full",
            markeredgewidth=2.5 if is_chosen else 1,
            zorder=2.5 + place / 100,
            label=f"{shortened(assignor)}: {metrics['moved']:,} moved, worst topic "
            f"{times(metrics['topic_spread'])}{' (chosen)' if is_chosen else ''}",
        )


def _moves(axes: "Axes", most: float) -> None:
    """Scale an axis of moves: whole numbers, logarithmic beyond the first few."""
    from matplotlib.ticker import (  # noqa: PLC0415 - see `style`
        MaxNLocator,
        SymmetricalLogLocator,
    )

    if most > _LINEAR:
        axes.set_xscale("symlog", linthresh=_LINEAR)
        ticks = SymmetricalLogLocator(base=10, linthresh=_LINEAR, subs=(1, 2, 5))
        axes.xaxis.set_major_locator(ticks)
    else:
        axes.xaxis.set_major_locator(MaxNLocator(nbins=8, integer=True, min_n_ticks=1))
    axes.xaxis.set_major_formatter("{x:,.0f}")


def _known(value: float | None) -> bool:
    return value is not None and math.isfinite(value)
