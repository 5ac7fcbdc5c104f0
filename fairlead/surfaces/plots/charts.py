"""The plots of a review: consumers before and after, and gain by moves.

Belongs here: one function per plot, figures in, SVG out. Does not: style (`style`), plots over time
(`over_time`).

Plots of large groups are limited in size. Unknown values (None, NaN) leave a gap.
"""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from fairlead.common.words import times
from fairlead.domain.candidate_figures import SnapshotCandidate
from fairlead.domain.consumers import ConsumerChange
from fairlead.surfaces.plots.style import (
    AFTER,
    BEFORE,
    BOUND,
    GREY,
    canvas,
    drawing,
    legend,
    records,
    shortened,
    svg_text,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Metrics = Mapping[str, Any]

#: Maximum number of consumers drawn; more bars cannot be distinguished.
CONSUMERS: Final = 30
_MARKERS: Final = "osD^vPX*"
_LINEAR: Final = 10


def consumers(changes: Sequence[ConsumerChange]) -> str:
    """Draw each consumer's lag and number of partitions before and after a plan.

    Parameters
    ----------
    changes
        From `fairlead.domain.consumers.changes`; at least one. The `CONSUMERS` with most lag are
        drawn.

    Examples
    --------
    >>> "orders-1" in consumers([ConsumerChange("orders-1", 3, 900, 2, 500)])
    True
    """
    heaviest = sorted(
        changes, key=lambda change: (-max(change.lag_before, change.lag_after), change.consumer)
    )
    rows = heaviest[:CONSUMERS]
    with drawing():
        figure, axes = canvas(1.3 + 0.34 * len(rows))
        places = np.arange(len(rows))
        before = np.array([row.lag_before for row in rows], np.float64)
        after = np.array([row.lag_after for row in rows], np.float64)
        axes.barh(places - 0.19, before, 0.36, color=BEFORE, label="before")
        axes.barh(places + 0.19, after, 0.36, color=AFTER, label="after")
        share = sum(row.lag_after for row in changes) / len(changes)
        axes.axvline(share, color=BOUND, linewidth=1.2, linestyle="--", label="even share")
        axes.set_yticks(places, [shortened(row.consumer) for row in rows])
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.tick_params("y", length=0)
        records(axes.xaxis)
        axes.set_xlim(0, 1.02 * max(before.max(), after.max(), 1.0))
        axes.set_xlabel("lag (records)")
        counts = axes.secondary_yaxis("right")
        counts.set_yticks(
            places, [f"{row.partitions_before:,} → {row.partitions_after:,}" for row in rows]
        )
        counts.tick_params("y", length=0)
        counts.spines[:].set_visible(False)
        counts.set_ylabel("partitions")
        legend(figure, axes)
        which = f": {len(rows)} of {len(changes):,} consumers with most lag"
        axes.set_title("Lag of each consumer" + which * (len(rows) < len(changes)))
        return svg_text(figure)


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
    with drawing():
        figure, axes = canvas(3.6 + 0.2 * len(placed))
        if len(curve) > 1:
            moves, forecast_time_lag_s = zip(*curve, strict=True)
            style: Any = {"color": GREY, "label": "sticky-lag-aware, move by move"}
            axes.step(moves, forecast_time_lag_s, where="post", **style)
        _mark(axes, placed, chosen)
        _moves(
            axes,
            max([moves for moves, _ in curve] + [candidate["moved"] for _, candidate in placed]),
        )
        records(axes.yaxis)
        axes.margins(0.05, 0.12)
        axes.set_xlabel("partitions moved")
        axes.set_ylabel("forecast time lag (s)")
        axes.set_title("Forecast by partitions moved")
        axes.grid()
        legend(figure, axes)
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
