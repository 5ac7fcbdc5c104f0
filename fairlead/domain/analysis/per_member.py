"""From partitions to their owners, and back: sums over owned partitions, and owners' values."""

from typing import TypeVar

import numpy as np
import numpy.typing as npt

from fairlead.domain.analysis.sample_series import Float64, Int32, Int64, Mask, SampleSeries

Scalar = TypeVar("Scalar", bound=np.generic)


class PerMember:
    """Sums over the partitions that a member owns at the end of each of S steps."""

    def __init__(self, series: SampleSeries) -> None:
        self._series = series
        self.steps, self.members = len(series) - 1, len(series.members)
        rows = np.arange(self.steps)[:, None] * (self.members + 1)
        # Partitions without an owner are summed in a last column, which is dropped.
        owner = np.where(series.owner[1:] >= 0, series.owner[1:], self.members)
        self._cell = (rows + owner).ravel()
        self._size = self.steps * (self.members + 1)

    def sum(self, values: Int64 | Float64 | Mask) -> Float64:
        """Sum values of shape (S, P) to float64 of shape (S, M)."""
        total = np.bincount(self._cell, weights=values.ravel(), minlength=self._size)
        table: Float64 = total.reshape(self.steps, self.members + 1).astype(np.float64)
        return table[:, : self.members]

    def any(self, values: Mask) -> Mask:
        """Whether a value of shape (S, P) is true, bool of shape (S, M)."""
        count = np.bincount(self._cell[values.ravel()], minlength=self._size)
        table: Mask = count.reshape(self.steps, self.members + 1) > 0
        return table[:, : self.members]

    def steady(self) -> Mask:
        """Whether a member kept its partitions during a step, and no log was replaced, (S, M)."""
        owner = self._series.owner
        changed = (owner[1:] != owner[:-1]) | ~self._series.in_one_log[:-1]
        gained = self.any(changed)
        lost = np.zeros((self.steps, self.members), dtype=bool)
        step, partition = np.nonzero(changed)
        before = owner[step, partition]
        lost[step[before >= 0], before[before >= 0]] = True
        owns = self.any(np.ones_like(changed))
        return owns & ~gained & ~lost


def sum_by_owner(values: Float64 | Mask, owner: Int32, members: int) -> Float64:
    """Sum values of shape (P,) over each member's partitions, float64 of shape (M,)."""
    owned = owner >= 0
    return np.bincount(owner[owned], values[owned], members).astype(np.float64)


def of_owner(values: npt.NDArray[Scalar], owner: Int32, none: float) -> npt.NDArray[Scalar]:
    """Return the value of each partition's owner, from members' values of shape (..., M).

    Examples
    --------
    >>> of_owner(np.array([5.0, 7.0]), np.array([1, -1, 0], np.int32), 0.0).tolist()
    [7.0, 0.0, 5.0]
    """
    # Index -1, no owner, is the last element.
    filled = np.full((*values.shape[:-1], 1), none, values.dtype)
    return np.concatenate((values, filled), axis=-1)[..., owner]


def any_owned(series: SampleSeries, chosen: Mask) -> Mask:
    """Return whether each member now owns any of these partitions, bool of shape (M,)."""
    owned: Mask = sum_by_owner(chosen, series.owner[-1], len(series.members)) > 0
    return owned
