"""Numbering of items within their group, for arrays in which the items of a group are adjacent.

Belongs here: this computation, which most assignors need. Belongs elsewhere: what the groups are.
"""

import numpy as np
import numpy.typing as npt


def within_groups(sizes: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the number of each item within its group, counted from 0; `sizes` are the group sizes.

    Examples
    --------
    >>> within_groups(np.array([2, 0, 3])).tolist()
    [0, 1, 0, 1, 2]
    """
    ends = np.cumsum(sizes)
    return np.arange(ends[-1] if ends.size else 0) - np.repeat(ends - sizes, sizes)
