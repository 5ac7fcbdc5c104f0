"""Settings of matplotlib for the plots in the docs."""

from typing import Any, Final

#: A grey that is readable on light and dark pages.
GREY: Final = "#808080"
#: Colours of the assignors in docs/pareto.svg and docs/backtest.svg.
COLOURS: Final = {
    "sticky-lag-aware": "C0",
    "lag-aware": "C1",
    "sticky": "C2",
    "roundrobin": "C3",
    "fair": "C4",
    "range": "C5",
}
STYLE: Final[Any] = {  # Any, since matplotlib's own type lists all settings as literals
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
    "text.parse_math": False,  # names may contain dollar signs
    "svg.fonttype": "none",
    "svg.hashsalt": "fairlead",
}
