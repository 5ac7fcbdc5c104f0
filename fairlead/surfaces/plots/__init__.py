"""Plots for people: SVG that reads on light pages and on dark ones, about 670 pixels wide.

Belongs here: drawing figures that others computed. Does not: computing them, nor where a plot is
shown (pages, reviews, files). Equal input gives equal SVG.
"""

from fairlead.surfaces.plots.charts import consumers, frontier
from fairlead.surfaces.plots.over_time import COLOURS, over_time, owners_over_time
from fairlead.surfaces.plots.style import data_uri

__all__ = ["COLOURS", "consumers", "data_uri", "frontier", "over_time", "owners_over_time"]
