"""Style of the plots: colours, matplotlib's settings, shortened names, axes in records.

Belongs here: the style. Does not: the content of a plot (`charts`).

matplotlib is imported for the first plot, because its import takes as long as all others of a run.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any, Final
from warnings import catch_warnings, filterwarnings

#: Readable on light and dark pages.
GREY: Final = "#808080"

_NAME: Final = 32

_STYLE: Final[Any] = {  # typed by matplotlib as literals of all its settings
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
    "text.parse_math": False,  # names may hold dollar signs
    "svg.fonttype": "none",
    "svg.hashsalt": "fairlead",
}
_MATPLOTLIB: Final = Lock()


@contextmanager
def drawing() -> Iterator[None]:
    """Draw in Fairlead's style during the block, in one thread at a time.

    matplotlib's settings are global to the process.
    """
    import matplotlib as mpl  # noqa: PLC0415 - see above

    with _MATPLOTLIB, mpl.rc_context(_STYLE), catch_warnings():
        # Text is not drawn as paths, so glyphs come from the reader's fonts.
        filterwarnings("ignore", message=r"Glyph .* missing from font")
        yield


def shortened(text: str, length: int = _NAME) -> str:
    """Shorten a name in its middle, and replace characters that XML does not allow."""
    text = "".join(sign if sign.isprintable() else "\N{REPLACEMENT CHARACTER}" for sign in text)
    if len(text) <= length:
        return text
    return f"{text[: length // 2 - 1]}…{text[-length // 2 :]}"
