"""Plots as SVG in a page: lines over time, and strips that show the owners of partitions.

Belongs here: writing SVG without a library, in under a millisecond, because a group's page has
several plots. Belongs elsewhere: computing the figures, and placing a plot. Equal input gives equal
SVG.

Readers who see no colours can tell lines apart by their dashes, and strips by their letters.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from html import escape
from itertools import groupby
from string import ascii_uppercase
from typing import Final

#: Colours that are readable on light and dark pages.
COLOURS: Final = (
    *("#3d85e0", "#c9740a", "#2f9e5f", "#b65fc9"),
    *("#d6485b", "#1f97a8", "#8f8a22", "#8d8d8d"),
)
_GREY: Final = "#808080"
_DASHES: Final = ("", "7 3", "2 3", "9 3 2 3")
_WIDTH, _LEFT, _RIGHT = 720, 76, 12
#: Left margin of plots that show names of partitions beside the axis.
_NAMED: Final = 140
_HEIGHT, _TOP, _BOTTOM = 190, 10, 24
_ROW: Final = 18
_NAME: Final = 22
_OWNER: Final = 32
#: Plots that cover a longer time show dates without the time of day.
_LONG: Final = timedelta(days=8)
_Ends = tuple[datetime, datetime] | None


def over_time(
    at: Sequence[datetime],
    series: Mapping[str, Sequence[float | None]],
    title: str,
    written: Callable[[float], str] = "{:,.0f}".format,
    units: Sequence[float] = (),
) -> str:
    """Draw lines over time, each with its name below.

    Parameters
    ----------
    at
        Times, time-zone-aware, ascending.
    series
        Maps the name of each line to the line's value at each time; None leaves a gap. At most one
        line per colour.
    title
        Description for screen readers.
    written
        Formats a value of the axis.
    units
        Units of large values, ascending. The axis ends at a round number of one of the units.

    Examples
    --------
    >>> day = datetime(2026, 1, 1, tzinfo=UTC)
    >>> svg = over_time([day, day + timedelta(hours=1)], {"lag": [1.0, 2.0]}, "lag")
    >>> "M76,88L708,10h0" in svg
    True
    """
    known = [value for values in series.values() for value in values if value is not None]
    top = _rounded(max([0.0, *(value for value in known if math.isfinite(value))]), units)
    inner = _HEIGHT - _TOP - _BOTTOM
    body = ""
    for share in (0.0, 0.5, 1.0):
        y = _TOP + inner * (1 - share)
        body += (
            f'<path d="M{_LEFT},{y:g}H{_WIDTH - _RIGHT}" stroke="{_GREY}" stroke-opacity=".3"/>'
            f'<text x="{_LEFT - 6}" y="{y + 4:g}" text-anchor="end">'
            f"{escape(written(top * share))}</text>"
        )
    ends = (at[0], at[-1]) if at else None
    body += _times(ends, _HEIGHT)
    places = [_x(ends, moment) for moment in at]
    for place, values in enumerate(series.values()):
        body += (
            f'<path d="{_path(places, values, top)}" fill="none" stroke="{_colour(place)}"'
            f' stroke-width="2" stroke-linecap="round" stroke-dasharray="{_dash(place)}"/>'
        )
    for place, name in enumerate(series):
        x, y = _LEFT + place % 3 * 215, _HEIGHT + 14 + place // 3 * _ROW
        body += (
            f'<path d="M{x},{y}h26" stroke="{_colour(place)}" stroke-width="3"'
            f' stroke-dasharray="{_dash(place)}"/><text x="{x + 32}" y="{y + 4}">'
            f"{escape(_shortened(name, _NAME))}</text>"
        )
    return _svg(body, _HEIGHT + 10 + -(-len(series) // 3) * _ROW, title)


def owners_over_time(
    at: Sequence[datetime],
    owners: Mapping[str, Sequence[str | None]],
    title: str,
    until: datetime | None = None,
) -> str:
    """Draw the owners of partitions: a strip per partition, a letter and a colour per owner.

    Parameters
    ----------
    at
        Times of samples, time-zone-aware, ascending. An owner is drawn until the next sample.
    owners
        Maps each partition to its owner at each time; None: no owner.
    title
        Description for screen readers.
    until
        End of the strips; None: one average interval after the last sample.

    Examples
    --------
    >>> day = datetime(2026, 1, 1, tzinfo=UTC)
    >>> svg = owners_over_time([day, day + timedelta(hours=1)], {"t-0": ["a", "b"]}, "owners")
    >>> svg.count("<rect"), "A: a" in svg, "B: b" in svg
    (2, True, True)
    """
    names = sorted({name for row in owners.values() for name in row if name is not None})
    letters = {name: _letters(place) for place, name in enumerate(names)}
    height = _TOP + len(owners) * _ROW + _BOTTOM
    ends = None
    if at:
        ends = at[0], max(at[-1], until or at[-1] + (at[-1] - at[0]) / max(len(at) - 1, 1))
    body = _times(ends, height, _NAMED)
    edges = [*(_x(ends, moment, _NAMED) for moment in at), _WIDTH - _RIGHT]
    for row, (partition, by_time) in enumerate(owners.items()):
        y = _TOP + row * _ROW
        name = escape(_shortened(partition, 20))
        body += f'<text x="{_NAMED - 6}" y="{y + 12}" text-anchor="end">{name}</text>'
        for owner, places in groupby(range(len(by_time)), key=by_time.__getitem__):
            span = list(places)
            left, right = edges[span[0]], edges[span[-1] + 1]
            if owner is not None:
                body += _strip((left, y, right - left), letters[owner], names.index(owner), owner)
    for place, name in enumerate(names):
        x, y = _NAMED + place % 3 * 190, height + 14 + place // 3 * _ROW
        body += (
            f'<path d="M{x},{y}h12" stroke="{_colour(place)}" stroke-width="12"/>'
            f'<text x="{x + 18}" y="{y + 4}">{letters[name]}: '
            f"{escape(_shortened(name, _NAME))}</text>"
        )
    return _svg(body, height + 10 + -(-len(names) // 3) * _ROW, title)


def _strip(where: tuple[float, int, float], letter: str, place: int, owner: str) -> str:
    x, y, width = where
    box = (
        f'<rect x="{x:g}" y="{y}" width="{max(width - 1, 1):g}" height="{_ROW - 3}"'
        f' fill="{_colour(place)}"><title>{escape(_shortened(owner))}</title></rect>'
    )
    if width < 9 * len(letter) + 4:
        return box
    return f'{box}<text x="{x + 4:g}" y="{y + 12}" style="fill:#000">{letter}</text>'


def _path(places: Sequence[float], values: Sequence[float | None], top: float) -> str:
    path, gap = "", True
    for x, value in zip(places, values, strict=True):
        if value is None or not math.isfinite(value):
            gap = True
            continue
        y = _TOP + (_HEIGHT - _TOP - _BOTTOM) * (1 - value / top)
        path += f"{'M' if gap else 'L'}{x:g},{y:.4g}"
        gap = False
    # Without the line "h0" of length 0, a single value would be invisible. The line's round ends
    # make it a dot.
    return path + "h0" * bool(path)


def _x(ends: _Ends, moment: datetime, left: int = _LEFT) -> float:
    assert ends is not None  # noqa: S101 - there is at least one time
    length = ends[1] - ends[0]
    share = (moment - ends[0]) / length if length else 0.0
    return round(left + (_WIDTH - left - _RIGHT) * share, 1)


def _times(ends: _Ends, height: int, left: int = _LEFT) -> str:
    """Return the labels below a plot: the first time, the middle and the last time."""
    if ends is None:
        return ""
    first, length = ends[0], ends[1] - ends[0]
    form = "%d %b" if length > _LONG else "%d %b %H:%M"
    marks = ((0.0, "start"), (0.5, "middle"), (1.0, "end")) if length else ((0.0, "start"),)
    return "".join(
        f'<text x="{left + (_WIDTH - left - _RIGHT) * share:g}" y="{height - 7}"'
        f' text-anchor="{anchor}">{(first + length * share).astimezone(UTC):{form}}</text>'
        for share, anchor in marks
    )


def _rounded(value: float, units: Sequence[float]) -> float:
    """Return the end of an axis: the smallest round number that is not below `value`.

    Half of this number is round, too, because the middle of the axis also has a label.
    """
    if value <= 0:
        return 2.0
    unit = max((size for size in units if value >= 2 * size), default=1.0)
    power: float = unit * 10.0 ** math.floor(math.log10(value / unit))
    return next(step * power for step in (1, 2, 4, 6, 8, 10) if step * power >= value * (1 - 1e-9))


def _letters(place: int) -> str:
    more, last = divmod(place, len(ascii_uppercase))
    return (_letters(more - 1) if more else "") + ascii_uppercase[last]


def _colour(place: int) -> str:
    return COLOURS[place % len(COLOURS)]


def _dash(place: int) -> str:
    return _DASHES[place % len(_DASHES)]


def _svg(body: str, height: int, title: str) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img"'
        f' aria-label="{escape(_shortened(title, 120))}" font-size="12" font-family="sans-serif"'
        f' fill="currentColor">{body}</svg>'
    )


def _shortened(text: str, length: int = _OWNER) -> str:
    """Shorten a name in its middle, and replace characters that XML does not allow."""
    text = "".join(sign if sign.isprintable() else "\N{REPLACEMENT CHARACTER}" for sign in text)
    if len(text) <= length:
        return text
    return f"{text[: length // 2 - 1]}…{text[-length // 2 :]}"
