"""Plots for people: SVG for light and dark pages, about 670 pixels wide.

Belongs here: drawing. Does not: computing the figures, nor placing a plot (pages, reviews, files).
Equal input gives equal SVG.
"""

from fairlead.surfaces.plots.charts import frontier
from fairlead.surfaces.plots.over_time import COLOURS, over_time, owners_over_time
from fairlead.surfaces.plots.style import data_uri

__all__ = ["COLOURS", "data_uri", "frontier", "over_time", "owners_over_time"]
