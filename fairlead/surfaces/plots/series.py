"""Series too long to draw: cut into pieces, of which the peaks are kept.

Belongs here: what plots of any size share. Does not: drawing.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt


def cuts(length: int, most: int) -> npt.NDArray[np.int64]:
    """Return where the pieces start into which `length` values are cut, at most `most`."""
    pieces = min(length, most)
    return np.arange(pieces) * length // max(pieces, 1)


def peaks(values: Sequence[float | None], most: int) -> npt.NDArray[np.float64]:
    """Return the highest known value of each piece; NaN where none is known."""
    known = np.array(values, np.float64)
    known[np.isinf(known)] = np.nan
    return np.fmax.reduceat(known, cuts(known.size, most)) if known.size else known
