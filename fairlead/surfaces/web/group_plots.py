"""Plots of a group's page: figures over time, each with a table, and owners as strips.

Belongs here: which figures are drawn. Belongs elsewhere: drawing (`fairlead.surfaces.plots`), and
computing figures from samples (`fairlead.domain.stored_samples`).
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

import numpy as np

from fairlead.domain.analysis.sample_series import Float64
from fairlead.domain.figures import Figure, figure
from fairlead.domain.stored_samples import NOBODY, Change, GroupHistory, StoredSample, largest
from fairlead.surfaces import plots

#: Seconds of a minute, an hour, a day: units of an axis of durations.
_TIMES_S: Final = (60.0, 3600.0, 86_400.0)
_LATE, _BEHIND, _LAG = map(figure, ("forecast_time_lag_s", "time_lag_s", "lag"))
_ARRIVING, _SHARE = map(figure, ("arrival_rate", "capacity_share"))
_USED: Final = replace(figure("utilisation"), label="Utilisation")
#: Maximum number of strips in a plot of owners: more are unreadable.
STRIPS: Final = 24


@dataclass(frozen=True)
class Plot:
    """A plot with the table beside it.

    Parameters
    ----------
    rows
        For each line: name, newest value, largest value, and time of the largest value.
    missing
        Number of lines that are not drawn, because the plot has too few colours.
    """

    name: str
    svg: str
    rows: Sequence[tuple[str, str, str, datetime | None]]
    missing: int = 0


def plots_of(
    samples: Sequence[StoredSample], course: GroupHistory, objective_s: float
) -> list[Plot]:
    """Draw a group's figures over time: in total, by consumer and by partition."""
    forecast: dict[str, list[float | None]] = {
        "forecast": [sample.forecast_time_lag_s for sample in samples],
        "objective": [objective_s] * len(samples),
    }
    by_consumer = [
        (_USED, course.by_owner(course.capacity_share)),
        (_BEHIND, course.by_owner(course.behind_s, worst=True)),
        (_LAG, course.by_owner(course.lag)),
    ]
    by_partition = [
        (_BEHIND, course.behind_s),
        (_LAG, course.lag),
        (_ARRIVING, course.arrival_rate),
        (_SHARE, course.capacity_share),
    ]
    return [
        *_plot(_LATE, "", course.at, forecast),
        *(
            plot
            for what, names, series in (
                ("consumer", course.members, by_consumer),
                ("partition", course.partitions, by_partition),
            )
            for drawn, values in series
            for plot in _most(drawn, f", by {what}", course.at, names, values)
        ),
    ]


def plots_of_partition(course: GroupHistory, partition: str) -> list[Plot]:
    """Draw the time lag and the lag of one partition; empty if the partition is unknown."""
    if partition not in course.partitions:
        return []
    place = course.partitions.index(partition)
    return [
        plot
        for drawn, values in ((_BEHIND, course.behind_s), (_LAG, course.lag))
        for plot in _plot(drawn, f", {partition}", course.at, {partition: _known(values[:, place])})
    ]


def strip_of(course: GroupHistory, changes: Sequence[Change], until: datetime | None) -> str | None:
    """Draw the owners of partitions over time, for the `STRIPS` partitions that moved most."""
    if not course.at:
        return None
    moves = Counter(name for change in changes for name, *_ in change.moved)
    places = sorted(
        range(len(course.partitions)), key=lambda place: -moves[course.partitions[place]]
    )
    picked = {
        course.partitions[place]: [
            None if owner == NOBODY else owner
            for owner in (course.owner_name(sample, place) for sample in range(len(course.at)))
        ]
        for place in sorted(places[:STRIPS])
    }
    return plots.owners_over_time(course.at, picked, "Owner of each partition over time", until)


def _most(
    drawn: Figure, suffix: str, at: Sequence[datetime], names: Sequence[str], values: Float64
) -> list[Plot]:
    """Plot a figure of the consumers or partitions with the largest values."""
    lines = largest(names, values, len(plots.COLOURS))
    return _plot(drawn, suffix, at, lines, len(names) - len(lines))


def _known(values: Float64) -> list[float | None]:
    return [None if np.isnan(value) else value for value in values.tolist()]


def _plot(
    drawn: Figure,
    suffix: str,
    at: Sequence[datetime],
    series: Mapping[str, Sequence[float | None]],
    missing: int = 0,
) -> list[Plot]:
    """Return a list that contains a plot of the figure; it is empty if no value is known."""
    if not any(value is not None for values in series.values() for value in values):
        return []
    unit = " in records" if drawn.unit == "records" else ""  # other units are in the axis labels
    rows, name = [], drawn.label + unit + suffix
    for line, values in series.items():
        known = [(value, when) for value, when in zip(values, at, strict=True) if value is not None]
        most, when = max(known, default=(None, None), key=lambda pair: pair[0])
        newest = "none" if values[-1] is None else drawn.text(values[-1])
        rows.append((line, newest, drawn.text(most), when))
    units = _TIMES_S if drawn.unit == "seconds" else ()
    svg = plots.over_time(at, series, f"{name}, over time", drawn.text, units)
    return [Plot(name, svg, rows, missing)]
