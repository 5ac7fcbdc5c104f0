"""A backtest drawn over time.

Belongs here: the drawing. Does not: the figures (`report`).
"""

from pathlib import Path
from typing import Any, Final

from matplotlib.figure import Figure

from fairlead.backtest.replay import OBSERVED
from fairlead.backtest.report import Report
from fairlead.plots.style import GREY, drawing

FORMATS: Final = (".svg", ".png")


def draw(report: Report, path: Path) -> None:
    """Draw the heaviest member's lag over the lower bound, and the moves so far, over time.

    Parameters
    ----------
    path
        Of the file to write; one of `FORMATS`. Equal reports give equal SVG files.
    """
    with drawing():
        figure = Figure(figsize=(10, 7), layout="constrained")
        loads, moves = figure.subplots(2, 1, sharex=True, height_ratios=(2, 1))
        for course in report.courses:
            look: dict[str, Any] = {"linewidth": 1.2}
            if course.assignor == OBSERVED:
                look |= {"color": GREY, "linestyle": ":", "zorder": 3}
            loads.plot(course.at, course.over_bound, label=course.assignor, **look)
            moves.plot(course.at, course.moves.cumsum(), **look)
        loads.set_title(f"Group {report.group}, with each assignor in charge")
        loads.set_yscale("log")
        loads.yaxis.set_major_formatter("{x:g}")
        loads.yaxis.set_minor_formatter("{x:g}")
        loads.set_ylabel("heaviest member / lower bound")
        loads.legend(fontsize="small", ncols=4)
        moves.set_yscale("symlog")
        moves.yaxis.set_major_formatter("{x:g}")
        moves.set_ylim(bottom=0)
        moves.set_ylabel("partitions moved so far")
        metadata = {"Date": None} if path.suffix == ".svg" else None
        figure.savefig(path, metadata=metadata)
