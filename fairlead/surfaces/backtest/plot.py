"""A backtest drawn over time.

Belongs here: the drawing. Does not: the figures (`report`).
"""

from pathlib import Path
from typing import Any, Final

from matplotlib import rc_context
from matplotlib.figure import Figure

from fairlead.surfaces.backtest.replay import RECORDED
from fairlead.surfaces.backtest.report import HISTORY, Report

FORMATS: Final = (".svg", ".png")
#: Readable on light and dark pages.
GREY: Final = "#808080"
#: matplotlib's settings, also for the plots of the docs.
STYLE: Final[Any] = {  # typed by matplotlib as literals of all its settings
    "text.color": GREY,
    "axes.labelcolor": GREY,
    "axes.edgecolor": GREY,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": "medium",
    "xtick.color": GREY,
    "ytick.color": GREY,
    "grid.color": GREY,
    "grid.alpha": 0.25,
    "legend.framealpha": 0.0,
    "legend.fontsize": "small",
    "savefig.transparent": True,
    "font.sans-serif": ["DejaVu Sans", "Verdana", "Arial", "sans-serif"],
    "text.parse_math": False,  # names may hold dollar signs
    "svg.fonttype": "none",
    "svg.hashsalt": "fairlead",
}


def draw(report: Report, path: Path) -> None:
    """Draw the worst time lag and the moves so far over time.

    Parameters
    ----------
    path
        Of the file to write; one of `FORMATS`. Equal reports give equal SVG files.
    """
    with rc_context(STYLE):
        figure = Figure(figsize=(10, 7), layout="constrained")
        lag, moves = figure.subplots(2, 1, sharex=True, height_ratios=(2, 1))
        for course in report.courses:
            style: dict[str, Any] = {"linewidth": 1.2}
            if course.in_charge in HISTORY:
                dots = ":" if course.in_charge == RECORDED else "--"
                style |= {"color": GREY, "linestyle": dots, "zorder": 3}
            rows = course.stretches
            lag.plot(rows["at"], rows["worst_s"], label=course.in_charge, **style)
            moves.plot(rows["at"], rows["moved"].cumsum(), **style)
        lag.set_title(f"Group {report.group}, by assignor in charge")
        lag.set_ylabel("worst time lag (s)")
        lag.legend(fontsize="small", ncols=4)
        moves.set_ylabel("partitions moved so far")
        for axes in (lag, moves):
            axes.set_yscale("symlog")
            axes.yaxis.set_major_formatter("{x:g}")
            axes.set_ylim(bottom=0)
        metadata = {"Date": None} if path.suffix == ".svg" else None
        figure.savefig(path, metadata=metadata)
