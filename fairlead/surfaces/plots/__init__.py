"""Plots for people: SVG for light and dark pages, about 670 pixels wide.

Belongs here: drawing. Does not: computing the figures, nor placing a plot (pages, files). Equal
input gives equal SVG.
"""

from fairlead.surfaces.plots.over_time import COLOURS, over_time, owners_over_time

__all__ = ["COLOURS", "over_time", "owners_over_time"]
