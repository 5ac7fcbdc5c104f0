"""The protocol of clients that share time among their partitions."""

from dataclasses import dataclass
from typing import Protocol

from fairlead.simulation.world import Float64, Int64, Mask


@dataclass(frozen=True, eq=False)
class TimeStep:
    """One step of P partitions and M members.

    Parameters
    ----------
    waiting
        Records that are there to be read, float64 of shape (P,).
    owner
        Member that reads each partition, int64 of shape (P,); M: nobody.
    costs
        What a record takes, in records of the usual kind, float64 of shape (P,).
    budgets
        What each member can do, in records of the usual kind, float64 of shape (M + 1,); the last
        is nobody's.
    readable
        Which partitions may be read, bool of shape (P,).
    """

    waiting: Float64
    owner: Int64
    costs: Float64
    budgets: Float64
    readable: Mask


class Sharing(Protocol):
    """How members share their time; it may remember what they have fetched."""

    def read(self, step: TimeStep) -> Float64:
        """Return how many records of each partition are read, float64 of shape (P,)."""
        ...

    def ahead(self) -> Float64 | None:
        """Return records that applications hold and have not read, shape (P,); None: never any."""
        ...

    def forget(self, partitions: Mask, *, handed_out: bool = False) -> None:
        """Drop what was fetched of partitions; with `handed_out`, what applications hold, too."""
        ...
