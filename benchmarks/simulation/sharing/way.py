"""The protocol for clients: how members share their time among their partitions."""

from dataclasses import dataclass
from typing import Protocol

from fairlead.simulation.world import Float64, Int64, Mask


@dataclass(frozen=True, eq=False)
class TimeStep:
    """One step of P partitions and M members.

    Parameters
    ----------
    waiting
        Number of records that can be read, float64 of shape (P,).
    owner
        Member that reads each partition, int64 of shape (P,); M for no member.
    costs
        Cost of a record, as a multiple of the usual cost, float64 of shape (P,).
    budgets
        Work that each member can do in the step, in records of usual cost, float64 of shape
        (M + 1,). The last value is for partitions without a member.
    readable
        Whether each partition may be read, bool of shape (P,).
    """

    waiting: Float64
    owner: Int64
    costs: Float64
    budgets: Float64
    readable: Mask


class Sharing(Protocol):
    """How members share their time. An implementation may remember fetched records."""

    def read(self, step: TimeStep) -> Float64:
        """Return the number of records read from each partition, float64 of shape (P,)."""
        ...

    def ahead(self) -> Float64 | None:
        """Return how many unprocessed records applications hold, shape (P,); None: always 0."""
        ...

    def forget(self, partitions: Mask, *, handed_out: bool = False) -> None:
        """Drop fetched records; if `handed_out`, also the records that applications hold."""
        ...
