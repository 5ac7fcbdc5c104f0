"""A backtest drawn over time.

Belongs here: the drawing. Does not: the figures (`report`).
"""

from pathlib import Path
from typing import Any, Final

from matplotlib.figure import Figure

from fairlead.surfaces.backtest.replay import RECORDED
from fairlead.surfaces.backtest.report import HISTORY, Report
from fairlead.surfaces.plots.style import GREY, drawing

FORMATS: Final = (".svg", ".png")


def draw(report: Report, path: Path) -> None:
    """Draw the worst time lag and the moves so far over time.

    Parameters
    ----------
    path
        Of the file to write; one of `FORMATS`. Equal reports give equal SVG files.
    """
    with drawing():
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
