"""Partitions and lag of each consumer, before and after a plan."""

from dataclasses import dataclass

import numpy as np

from fairlead.domain.as_problem import Ownership
from fairlead.wire.document import PlanDocument


@dataclass(frozen=True)
class ConsumerChange:
    """A consumer before and after a plan. Lags are in records, as stored in the plan."""

    consumer: str
    partitions_before: int
    lag_before: int
    partitions_after: int
    lag_after: int


def changes(plan: PlanDocument, before: Ownership, after: Ownership) -> list[ConsumerChange]:
    """Return the changes of all consumers, by descending lag before the plan.

    Parameters
    ----------
    plan
        The plan, which has the lag of each partition as its weight.
    before, after
        Owners before and after the plan. A consumer may be in only one of the two.
    """
    rows = []
    for name in sorted({*before, *after}):
        partitions_before, lag_before = load(plan, before, name)
        partitions_after, lag_after = load(plan, after, name)
        rows.append(
            ConsumerChange(name, partitions_before, lag_before, partitions_after, lag_after)
        )
    return sorted(rows, key=lambda row: (-row.lag_before, row.consumer))


def load(plan: PlanDocument, owned: Ownership, consumer: str) -> tuple[int, int]:
    """Return the number of partitions that a consumer owns, and their lag in records."""
    partitions = lag = 0
    for topic, numbers in owned.get(consumer, {}).items():
        weights = plan.weights.get(topic, np.empty(0))
        existing = [number for number in numbers if number < weights.size]
        partitions += len(numbers)
        lag += int(weights[existing].sum())
    return partitions, lag
