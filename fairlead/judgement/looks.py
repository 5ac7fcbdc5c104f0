"""Looks at one group: offsets and owners of its partitions at a sequence of moments.

Belongs here: the arrays that everything else works on, and which steps between looks can be
trusted. Does not: where looks come from (`fairlead.kafka`, `lines`), nor what they mean.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

Float64 = npt.NDArray[np.float64]
Int64 = npt.NDArray[np.int64]
Int32 = npt.NDArray[np.int32]
Mask = npt.NDArray[np.bool_]

#: An offset that is not known, or not committed.
NONE = -1


@dataclass(frozen=True, eq=False)
class Looks:
    """What was seen of a group: L looks at P partitions.

    Partitions stand as in `assignors.problem.Problem`: topic by topic, ascending.

    Parameters
    ----------
    at
        Seconds since the epoch, strictly ascending, float64 of shape (L,). The last is now.
    begin, end
        First offset of the log and the one behind its last, int64 of shape (L, P); -1: not known,
        as for a partition that did not exist yet.
    committed
        int64 of shape (L, P); -1: none.
    members
        Names of all who ever owned something, and of all who are members now.
    owner
        int32 of shape (L, P): index into `members`, -1: nobody, or not known.
    """

    at: Float64
    begin: Int64
    end: Int64
    committed: Int64
    members: tuple[str, ...]
    owner: Int32

    def __len__(self) -> int:
        """Return the number of looks."""
        return int(self.at.size)

    @property
    def partitions(self) -> int:
        """P."""
        return int(self.end.shape[1])

    @cached_property
    def steps(self) -> Float64:
        """Seconds between each look and the one before, float64 of shape (L - 1,)."""
        return np.diff(self.at)
