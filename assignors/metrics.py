"""Figures of an assignment: balance of partitions and lag, spread, and moves.

Belongs here: the figures of a plan that follow from its assignment. Belongs elsewhere: whether the
assignment is valid (`verifier`), the lower bound (`lower_bound`).
"""

from dataclasses import dataclass

import numpy as np

from assignors.assignment import Assignment
from assignors.lower_bound import lag_lower_bound
from assignors.problem import Int32, Int64, Problem
from assignors.spread import worst


@dataclass(frozen=True)
class Metrics:
    """The figures of one assignment. Integers are exact, however large the lags are.

    Parameters
    ----------
    count_min, count_max
        Fewest and most partitions of a member.
    balance_score
        KIP-54's balance score: over all pairs of members, the sum of differences in partition
        counts.
    lag_max, lag_mean
        Lag of the most loaded member, and mean lag of the members, in records.
    lag_lower_bound
        A lower bound on `lag_max` for all assignments.
    gap
        Excess of `lag_max` over `lag_lower_bound`, as a share of the bound; 0 is optimal.
    kept, moved, placed
        Numbers of partitions: `kept` stay with their owner, `moved` get another owner although the
        previous one is still a member, `placed` had no owner among the members.
    topic_spread
        For the worst topic: its largest share on one member, divided by its even share (partitions
        divided by subscribers, rounded up). 1 is optimal; 0: nothing is assigned.
    """

    count_min: int
    count_max: int
    balance_score: int
    lag_max: int
    lag_mean: float
    lag_lower_bound: int
    gap: float
    kept: int
    moved: int
    placed: int
    topic_spread: float

    def as_dict(self) -> dict[str, int | float]:
        """Return a map from names to figures, ready for JSON."""
        return dict(vars(self))


def measure(problem: Problem, assignment: Assignment) -> Metrics:
    """Measure an assignment of a problem.

    Examples
    --------
    The example of KAFKA-5337, with all of the lag on one member:

    >>> problem = Problem.of({"t": 3}, {"a": ["t"], "b": ["t"]}, {"t": [100, 60, 50]})
    >>> metrics = measure(problem, Assignment(problem, np.zeros(3, np.int32)))
    >>> metrics.lag_max, metrics.lag_mean, metrics.lag_lower_bound, metrics.gap
    (210, 105.0, 105, 1.0)
    """
    members = len(problem.members)
    counts = assignment.counts
    lags = member_lags(problem, assignment.owner)
    bound = lag_lower_bound(problem)
    heaviest = max(lags, default=0)
    assigned = assignment.owner >= 0
    stays = assigned & (assignment.owner == problem.owner)
    share, even = worst(problem, assignment.owner)
    kept, moved = int(stays.sum()), moved_partitions(problem.owner, assignment.owner)
    return Metrics(
        count_min=int(counts.min()) if members else 0,
        count_max=int(counts.max()) if members else 0,
        balance_score=balance_score(counts),
        lag_max=heaviest,
        lag_mean=sum(lags) / members if members else 0.0,
        lag_lower_bound=bound,
        gap=(heaviest - bound) / bound if bound else 0.0,
        kept=kept,
        moved=moved,
        placed=int(assigned.sum()) - kept - moved,
        topic_spread=share / even,
    )


def moved_partitions(before: Int32, after: Int32) -> int:
    """Count the partitions whose owner changes from one member to another.

    Examples
    --------
    >>> moved_partitions(np.array([0, 0, -1], np.int32), np.array([0, 1, 1], np.int32))
    1
    """
    return int(((before >= 0) & (after >= 0) & (before != after)).sum())


def balance_score(counts: Int64) -> int:
    """KIP-54's balance score of partition counts: the sum of all pairwise differences.

    Examples
    --------
    >>> balance_score(np.array([1, 2, 4]))
    6
    """
    # In ascending order, the i-th of M counts is the larger in i pairs and the smaller in M-1-i.
    ranks = np.arange(counts.size, dtype=np.int64)
    return int(((2 * ranks - counts.size + 1) * np.sort(counts)).sum())


def member_lags(problem: Problem, owner: Int32) -> list[int]:
    """Return each member's lag in records; Python integers, because sums may exceed int64."""
    assigned, weights = owner >= 0, problem.exact_weights
    lags = np.zeros(len(problem.members), dtype=weights.dtype)
    np.add.at(lags, owner[assigned], weights[assigned])
    exact: list[int] = lags.tolist()
    return exact
