"""What stands in a line of text: sparklines, and images in markdown.

Belongs here: SVG small enough to be shown in place. Does not: full plots (`charts`).
"""

import math
import re
from base64 import b64encode
from collections.abc import Sequence
from html import escape
from typing import Final

import numpy as np

from fairlead.domain.consumers import ConsumerChange
from fairlead.surfaces.plots.series import peaks
from fairlead.surfaces.plots.style import AFTER, BEFORE, GREY, shortened

_SPARKS: Final = 40
_SPARK_LABEL: Final = 24
_ALT: Final = 80
#: What is longer stands behind a link in the Dagster UI.
IN_PLACE: Final = 1000
_BARS: Final = 8
_BAR_LABEL: Final = 16


def sparkline(values: Sequence[float | None], label: str) -> str:
    """Draw values as a line in a line of text; with `as_markdown`, in under 1,000 characters.

    Parameters
    ----------
    values
        Evenly spaced; of more than 40 the peaks are drawn.
    label
        Stands to the right, shortened to 24 characters.

    Examples
    --------
    >>> svg = sparkline([1, None, 3, 4], "4 records")
    >>> svg[svg.index("M") : svg.index('" fill')]
    'M2,14h0M79,6h0L118,2'
    """
    highest = peaks(values, _SPARKS)
    known = highest[np.isfinite(highest)]
    top = float(known.max(initial=0.0)) or 1.0
    low = min(float(known.min(initial=0.0)), 0.0)
    path, gap = "", True
    for place, value in enumerate(highest.tolist()):
        if not math.isfinite(value):
            gap = True
            continue
        x = round(2 + 116 * place / max(len(highest) - 1, 1))
        y = round(18 - 16 * (value - low) / (top - low))
        path += f"M{x},{y}h0" if gap else f"L{x},{y}"
        gap = False
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" width="320" height="20">'
        f'<path d="{path}" fill="none" stroke="{AFTER}" stroke-width="2" stroke-linecap="round"/>'
        f'<text x="126" y="15" font-size="13" font-family="sans-serif" fill="{GREY}">'
        f"{escape(shortened(label, _SPARK_LABEL))}</text></svg>"
    )


def bars(changes: Sequence[ConsumerChange]) -> str:
    """Draw the lag of the heaviest consumers before and after; `as_markdown` keeps it in place.

    Parameters
    ----------
    changes
        Of all consumers; as many of the heaviest as fit into `IN_PLACE` characters are drawn.

    Examples
    --------
    >>> svg = bars([ConsumerChange("orders-1", 3, 900, 2, 450)])
    >>> svg[svg.index("M") : svg.index('" stroke')], "900 \N{RIGHTWARDS ARROW} 450" in svg
    ('M230,6h180', True)
    """
    heaviest = sorted(
        changes, key=lambda change: (-max(change.lag_before, change.lag_after), change.consumer)
    )
    for count in range(min(len(heaviest), _BARS), 0, -1):
        svg = _bars(heaviest[:count], len(heaviest))
        if len(as_markdown(svg, "x" * _ALT)) < IN_PLACE:
            return svg
    return _bars([], len(heaviest))


def _bars(rows: Sequence[ConsumerChange], total: int) -> str:
    top = max([1, *(max(row.lag_before, row.lag_after) for row in rows)])
    before = after = words = ""
    for place, row in enumerate(rows):
        y = 20 * place
        before += f"M230,{y + 6}h{_length(row.lag_before, top)}"
        after += f"M230,{y + 13}h{_length(row.lag_after, top)}"
        name = escape(shortened(row.consumer, _BAR_LABEL))
        words += (
            f'<text y="{y + 13}">{name}: {_count(row.lag_before)} → {_count(row.lag_after)}</text>'
        )
    height = 20 * len(rows)
    if len(rows) < total:
        words += f'<text y="{height + 13}">{total - len(rows):,} more</text>'
        height += 20
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="420" height="{height}">'
        f'<g font-size="12" font-family="sans-serif" fill="{GREY}">{words}</g>'
        f'<path d="{before}" stroke="{BEFORE}" stroke-width="5"/>'
        f'<path d="{after}" stroke="{AFTER}" stroke-width="5"/></svg>'
    )


def staircase(points: Sequence[tuple[int, float]]) -> str:
    """Draw what moves buy, forecast lateness from 0 moves on, in a line of text.

    Parameters
    ----------
    points
        Moves spent, and how late the group then is, in seconds; of more than 24 some are drawn.

    Examples
    --------
    >>> "0 moves: 900 s late | 1: 45 s" in staircase([(0, 900.0), (1, 45.0)])
    True
    """
    known = [(moves, late_s) for moves, late_s in points if math.isfinite(late_s)]
    if not known:
        return sparkline([], "nothing to move")
    lines = [
        known[place]
        for place in sorted({*range(0, len(known), -(-len(known) // 23)), len(known) - 1})
    ]
    last, top = max(known[-1][0], 1), max(1.0, *(late_s for _, late_s in known))
    path = f"M2,{round(38 - 36 * lines[0][1] / top)}"
    for moves, late_s in lines[1:]:
        path += f"H{round(2 + 176 * moves / last)}V{round(38 - 36 * late_s / top)}"
    label = f"0 moves: {known[0][1]:,.0f} s late | {known[-1][0]:,}: {known[-1][1]:,.0f} s"
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" width="420" height="40">'
        f'<path d="{path}" fill="none" stroke="{AFTER}" stroke-width="2"/>'
        f'<text x="190" y="24" font-size="12" font-family="sans-serif" fill="{GREY}">{label}</text>'
        "</svg>"
    )


def _length(lag: float, top: float) -> int:
    return round(180 * lag / top)


def _count(lag: float) -> str:
    return f"{lag:,.0f}"


def as_markdown(svg: str, alt: str) -> str:
    """Write an SVG as a markdown image that needs no network.

    Parameters
    ----------
    alt
        What the image shows, for those who do not see it; shortened to 80 characters.

    Examples
    --------
    >>> as_markdown("<svg/>", "lag")
    '![lag](data:image/svg+xml;base64,PHN2Zy8+)'
    """
    words = re.sub(r"[^\w .,:;%+-]", " ", shortened(alt, _ALT))
    return f"![{words}]({data_uri(svg)})"


def data_uri(svg: str) -> str:
    """Write an SVG as the address of an image that needs no network.

    Examples
    --------
    >>> data_uri("<svg/>")
    'data:image/svg+xml;base64,PHN2Zy8+'
    """
    return f"data:image/svg+xml;base64,{b64encode(svg.encode()).decode()}"
