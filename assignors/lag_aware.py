"""Lag-aware assignment as in KAFKA-5337: each topic separately, by partition counts, then by lag.

Belongs here: exactly the published rule. Belongs elsewhere: balance across topics, or keeping
owners (`sticky_lag_aware` does both).
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from assignors.assignment import Assignment
from assignors.problem import Int32, Problem


def lag_aware(problem: Problem) -> Assignment:
    """Give each partition, by descending lag, to the member with fewest partitions of the topic.

    If several members have the fewest, the partition goes to the one with the least lag in this
    topic, then to the first by name.

    Parameters
    ----------
    problem
        P partitions; current owners are ignored.

    Returns
    -------
    Assignment
        Every partition has the same owner as with the loop in KAFKA-5337.

    Notes
    -----
    As counts are compared first, every member gets one partition of the topic, then every member
    gets a second one, until none is left. In each of these rounds, the member with the least lag
    gets the partition with the most lag, the next member the next partition, and so on. So a sort
    per round replaces the loop over partitions: O(P log M). KAFKA-5337.

    Examples
    --------
    The example of the proposal:

    >>> lags = {"t0": [100_000, 60_000, 50_000]}
    >>> lag_aware(Problem.of({"t0": 3}, {"C0": ["t0"], "C1": ["t0"]}, lags)).by_member()
    {'C0': {'t0': [0]}, 'C1': {'t0': [1, 2]}}
    """
    owner = np.full(problem.partition_total, -1, dtype=np.int32)
    for topic, first in enumerate(problem.topic_offsets[:-1].tolist()):
        subscribers = problem.subscribers_of(topic)
        if subscribers.size:
            last = first + int(problem.partition_counts[topic])
            owner[first:last] = _deal(problem.exact_weights[first:last], subscribers)
    return Assignment(problem, owner)


def _deal(lags: npt.NDArray[Any], subscribers: Int32) -> Int32:
    owner = np.empty(lags.size, dtype=np.int32)
    heaviest_first = np.argsort(-lags, kind="stable")
    totals = np.zeros(subscribers.size, dtype=lags.dtype)
    for start in range(0, lags.size, subscribers.size):
        dealt = heaviest_first[start : start + subscribers.size]
        lightest_first = np.argsort(totals, kind="stable")[: dealt.size]
        owner[dealt] = subscribers[lightest_first]
        totals[lightest_first] += lags[dealt]
    return owner
