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

from fairlead.plots.series import peaks
from fairlead.plots.style import AFTER, GREY, shortened

_SPARKS: Final = 40
_SPARK_LABEL: Final = 24
_ALT: Final = 80


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
