"""Convert between values per partition and values per member, by the owners of partitions."""

from typing import TypeVar

import numpy as np
import numpy.typing as npt

from fairlead.domain.analysis.sample_series import Float64, Int32, Int64, Mask, SampleSeries

Scalar = TypeVar("Scalar", bound=np.generic)


class PerMember:
    """Sums over the partitions of each member, in S steps between samples.

    A partition belongs to the member that owns it at the end of the step.
    """

    def __init__(self, series: SampleSeries) -> None:
        self._series = series
        self.steps, self.members = len(series) - 1, len(series.members)
        rows = np.arange(self.steps)[:, None] * (self.members + 1)
        # Sum partitions without an owner in an additional last column, which is dropped.
        owner = np.where(series.owner[1:] >= 0, series.owner[1:], self.members)
        self._cell = (rows + owner).ravel()
        self._size = self.steps * (self.members + 1)

    def sum(self, values: Int64 | Float64 | Mask) -> Float64:
        """Sum values of shape (S, P) over each member's partitions, float64 of shape (S, M)."""
        total = np.bincount(self._cell, weights=values.ravel(), minlength=self._size)
        table: Float64 = total.reshape(self.steps, self.members + 1).astype(np.float64)
        return table[:, : self.members]

    def any(self, values: Mask) -> Mask:
        """Return whether `values` (S, P) has a true value in a member's partitions, (S, M)."""
        count = np.bincount(self._cell[values.ravel()], minlength=self._size)
        table: Mask = count.reshape(self.steps, self.members + 1) > 0
        return table[:, : self.members]

    def steady(self) -> Mask:
        """Return whether each member kept the same partitions and logs in each step, (S, M).

        False for a member without partitions.
        """
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
    """Return the sum of `values` (P,) over each member's partitions, float64 of shape (M,)."""
    owned = owner >= 0
    return np.bincount(owner[owned], values[owned], members).astype(np.float64)


def of_owner(values: npt.NDArray[Scalar], owner: Int32, none: float) -> npt.NDArray[Scalar]:
    """Return for each partition the value of its owner; `values` has one per member, (..., M).

    Partitions without an owner get the value `none`.

    Examples
    --------
    >>> of_owner(np.array([5.0, 7.0]), np.array([1, -1, 0], np.int32), 0.0).tolist()
    [7.0, 0.0, 5.0]
    """
    # Append `none` as the last element: the owner -1 of partitions without an owner selects it.
    filled = np.full((*values.shape[:-1], 1), none, values.dtype)
    return np.concatenate((values, filled), axis=-1)[..., owner]


def any_owned(series: SampleSeries, chosen: Mask) -> Mask:
    """Return whether each member now owns at least one of the chosen partitions, bool (M,)."""
    owned: Mask = sum_by_owner(chosen, series.owner[-1], len(series.members)) > 0
    return owned
