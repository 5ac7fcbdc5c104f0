"""Consumer groups as bins: the assignment rules of Landau et al., as peers.

Belongs here: Best Fit Decreasing, and their Modified Best Fit and Worst Fit, which keep what a
consumer has as far as it fits. Does not: their autoscaling: here the number of consumers is given,
and a partition that fits nowhere goes where most room is.

"Kafka Consumer Group Autoscaler" (arXiv 2206.11170), section V; "Latency and cost-aware consumer
group autoscaling in message broker systems", JPDC 201 (2025).
"""

from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from assignors.problem import Problem
from fairlead.simulation.controllers import ByPlans, Moment
from fairlead.simulation.world import Float64, Int32

Rule = Literal["BFD", "MBF", "MWF", "MBFP", "MWFP"]
RULES: Final[tuple[Rule, ...]] = ("BFD", "MBF", "MWF", "MBFP", "MWFP")


class BinPacking(ByPlans):
    """Packs all partitions again at each decision, by how fast they filled since the last sample.

    Parameters
    ----------
    rule
        Best Fit Decreasing forgets who had what. The modified rules go through the consumers, the
        fullest first (those with a P at the end: the one with the heaviest partition first); each
        first gives its lightest partitions to consumers that have been gone through, as long as
        they fit, then keeps the heaviest of the others; what it cannot keep is placed at the end,
        heaviest first.
    capacity
        How many records a second are packed into a consumer: less than it can do.
    """

    def __init__(self, rule: Rule, capacity: float) -> None:
        super().__init__()
        self._rule: Rule = rule
        self._capacity = capacity

    def plan(self, moment: Moment) -> Int32 | None:
        """Pack; None where that is what there is."""
        series = moment.series()
        if len(series) < 2:
            return None
        rates: Float64 = (series.end[-1] - series.end[-2]) / series.seconds[-1]
        owner = pack(moment.problem, rates, self._rule, self._capacity)
        return None if np.array_equal(owner, moment.problem.owner) else owner


def pack(problem: Problem, rates: Float64, rule: Rule, capacity: float) -> Int32:
    """Return who reads what by a rule, int32 of shape (P,).

    Parameters
    ----------
    problem
        P partitions, M members, and who owns what now; everybody reads everything.
    rates
        Records a second, shape (P,).
    rule, capacity
        As of `BinPacking`.
    """
    bins = _Bins(problem, rates, capacity, worst="W" in rule)
    heaviest_first = np.argsort(-rates, kind="stable")
    if rule == "BFD":
        for partition in heaviest_first.tolist():
            bins.place(partition, home=int(problem.owner[partition]))
        return bins.owner
    left: list[int] = []
    for member in _in_turn(problem, rates, by_heaviest=rule.endswith("P")):
        mine = [p for p in heaviest_first.tolist() if problem.owner[p] == member]
        while mine and bins.give(mine[-1]):
            mine.pop()
        kept = bins.keep(member, mine)
        left += mine[kept:]
    left += np.flatnonzero(problem.owner < 0).tolist()
    for partition in sorted(left, key=lambda p: (-rates[p], p)):
        bins.place(partition, home=-1)
    return bins.owner


def _in_turn(problem: Problem, rates: Float64, *, by_heaviest: bool) -> list[int]:
    """Members that own something, the most utilised first."""
    size = np.zeros(len(problem.members))
    held = problem.owner >= 0
    if by_heaviest:
        np.maximum.at(size, problem.owner[held], rates[held])
    else:
        np.add.at(size, problem.owner[held], rates[held])
    owners = np.unique(problem.owner[held])
    return [int(member) for member in owners[np.argsort(-size[owners], kind="stable")]]


@dataclass
class _Bins:
    """Consumers while they are being filled."""

    problem: Problem
    rates: Float64
    capacity: float
    worst: bool

    def __post_init__(self) -> None:
        self.owner: Int32 = np.full(self.rates.size, -1, np.int32)
        self._load = np.zeros(len(self.problem.members))
        self._open: list[int] = []

    def give(self, partition: int) -> bool:
        """Put a partition into the most, or least, utilised open consumer that it fits into."""
        fitting = [m for m in self._open if self._fits(partition, m)]
        if not fitting:
            return False
        sign = 1 if self.worst else -1
        self._put(partition, min(fitting, key=lambda m: (sign * self._load[m], m)))
        return True

    def keep(self, member: int, mine: list[int]) -> int:
        """Let a member keep the first of these that fit into it; return how many did."""
        for number, partition in enumerate(mine):
            if member not in self._open:
                self._open.append(member)
            elif not self._fits(partition, member):
                return number
            self._put(partition, member)
        return len(mine)

    def place(self, partition: int, *, home: int) -> None:
        """Put a partition where it fits, else into a new consumer, else where most room is."""
        if self.give(partition):
            return
        closed = [m for m in range(self._load.size) if m not in self._open]
        if closed:
            member = home if home in closed else closed[0]
            self._open.append(member)
        else:
            member = int(np.argmin(self._load))
        self._put(partition, member)

    def _fits(self, partition: int, member: int) -> bool:
        return bool(self._load[member] + self.rates[partition] <= self.capacity)

    def _put(self, partition: int, member: int) -> None:
        self.owner[partition] = member
        self._load[member] += self.rates[partition]
