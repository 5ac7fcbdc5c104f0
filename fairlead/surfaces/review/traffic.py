"""What arrives at each consumer before and after a plan, beside what it can do.

Belongs here: sums for people. Does not: estimating rates and speeds (`fairlead.domain.judgement`).
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np

from fairlead.domain.as_problem import Ownership
from fairlead.domain.judgement.capacities import Capacity, speeds


@dataclass(frozen=True)
class Traffic:
    """One consumer under a plan, in records a second.

    Parameters
    ----------
    before, after
        What arrives at its partitions.
    capacity
        What it can do, or was seen to do at least; None: nothing is known of it.
    measured
        Whether it was at its limit then.
    expected
        What is expected of it, as the judgement does: of who was never at its limit, what its peers
        can do. None: nothing is known of anybody.
    """

    consumer: str
    before: float
    after: float
    capacity: float | None = None
    measured: bool = False
    expected: float | None = None

    @property
    def used_before(self) -> float | None:
        """What arrives before the plan as a share of what is expected of it."""
        return self.before / self.expected if self.expected else None

    @property
    def used_after(self) -> float | None:
        """The same, under the plan."""
        return self.after / self.expected if self.expected else None


def traffic(
    rates: Mapping[tuple[str, int], float],
    before: Ownership,
    after: Ownership,
    capacities: Mapping[str, Capacity],
) -> list[Traffic]:
    """Sum up every consumer, the one at which most arrives under the plan first.

    Parameters
    ----------
    rates
        Topic and partition to records a second; what is missing is not known, and counts as none.
        Empty: nothing is known, and no consumer is returned.

    Examples
    --------
    >>> rates = {("t", 0): 30.0, ("t", 1): 20.0}
    >>> seen = {"a": Capacity(40.0, measured=True, at=0.0)}
    >>> for one in traffic(rates, {"a": {"t": [0, 1]}}, {"a": {"t": [0]}, "b": {"t": [1]}}, seen):
    ...     print(one.consumer, one.before, one.after, one.capacity, one.expected)
    a 50.0 30.0 40.0 40.0
    b 0.0 20.0 None 41.2
    """
    if not rates:
        return []
    rows = []
    names = sorted({*before, *after})
    expected = _expected(names, capacities)
    for name in names:
        known = capacities.get(name)
        rows.append(
            Traffic(
                name,
                _arrive(rates, before.get(name, {})),
                _arrive(rates, after.get(name, {})),
                None if known is None else known.records_per_s,
                known is not None and known.measured,
                expected.get(name),
            )
        )
    return sorted(rows, key=lambda row: (-row.after, row.consumer))


def _expected(
    names: Collection[str], capacities: Mapping[str, Capacity]
) -> dict[str, float | None]:
    """Return what the judgement would expect of each consumer when the newest of these was seen."""
    seen_at = max((one.at for one in capacities.values()), default=0.0)
    idle, nobody = np.zeros(len(names)), np.zeros(len(names), np.bool_)
    found = speeds([*names], capacities, idle, nobody, seen_at).per_s
    return {name: per_s or None for name, per_s in zip(names, found.tolist(), strict=True)}


def _arrive(rates: Mapping[tuple[str, int], float], share: Mapping[str, Collection[int]]) -> float:
    return sum(
        (
            rates.get((topic, int(number)), 0.0)
            for topic, numbers in share.items()
            for number in numbers
        ),
        start=0.0,
    )
