"""Lag-aware assignment as published in KAFKA-5337: topic by topic, counts first, then lag.

Belongs here: the published rule, exactly. Does not: balance across topics, or keeping owners
(`sticky_lag_aware` does both).
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from assignors.assignment import Assignment
from assignors.problem import Int32, Problem


def lag_aware(problem: Problem) -> Assignment:
    """Deal each topic's partitions, most lag first, to the member with the fewest of them so far.

    Members with equally many are compared by the lag of these partitions, then by name.

    Parameters
    ----------
    problem
        P partitions; current owners are ignored.

    Returns
    -------
    Assignment
        The same owner for every partition as the published loop.

    Notes
    -----
    The count is compared first, so a topic is dealt in rounds of one partition per member. A round
    matches descending lags to ascending totals: O(P log M) without a loop over partitions.
    KAFKA-5337.

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
