"""Plots for people: SVG that reads on light pages and on dark ones, about 670 pixels wide.

Belongs here: drawing figures that others computed. Does not: computing them, nor where a plot is
shown (the Dagster UI, the review page, files). Equal input gives equal SVG.
"""

from fairlead.surfaces.plots.charts import consumers, frontier, lag_history
from fairlead.surfaces.plots.inline import as_markdown, bars, data_uri, sparkline, staircase
from fairlead.surfaces.plots.over_time import COLOURS, over_time, owners_over_time

__all__ = [
    "COLOURS",
    "as_markdown",
    "bars",
    "consumers",
    "data_uri",
    "frontier",
    "lag_history",
    "over_time",
    "owners_over_time",
    "sparkline",
    "staircase",
]
