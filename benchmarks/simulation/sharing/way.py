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
        Records that can be read, float64 of shape (P,).
    owner
        Member that reads each partition, int64 of shape (P,); M: no member.
    costs
        Cost of a record, as a multiple of the usual cost, float64 of shape (P,).
    budgets
        Work that each member can do, in records of usual cost, float64 of shape (M + 1,); the last
        value stands for no member.
    readable
        Whether each partition may be read, bool of shape (P,).
    """

    waiting: Float64
    owner: Int64
    costs: Float64
    budgets: Float64
    readable: Mask


class Sharing(Protocol):
    """How members share their time; an implementation may remember fetched records."""

    def read(self, step: TimeStep) -> Float64:
        """Return the number of records read from each partition, float64 of shape (P,)."""
        ...

    def ahead(self) -> Float64 | None:
        """Return the unprocessed records that applications hold, shape (P,); None: no records."""
        ...

    def forget(self, partitions: Mask, *, handed_out: bool = False) -> None:
        """Drop fetched records of partitions; with `handed_out`, also those in applications."""
        ...
