"""Fair assignment (KIP-49): each partition to its least-loaded eligible member.

Belongs here: the order in which topics are dealt. Does not: the water-fill that deals one topic
(`filling`), or keeping what is owned (`sticky`).
"""

import numpy as np

from assignors.assignment import Assignment
from assignors.filling import fill
from assignors.problem import Problem


def fair(problem: Problem) -> Assignment:
    """Assign every partition to the eligible member with the fewest partitions so far.

    Topics with the fewest subscribers go first, then those with more partitions, then by name:
    the most constrained choices are made while the most freedom is left. Of members with equally
    few, the next is the one with the fewest partitions of the topic, then the first by name.

    Parameters
    ----------
    problem
        P partitions of T topics, M members. Weights and current owners are ignored.

    Returns
    -------
    Assignment
        `owner`, int32 of shape (P,): member index, or -1 where a topic has no subscriber.

    Notes
    -----
    O(P log P + T M log M): a topic is dealt by filling the lowest loads to a common level. A rule
    of thumb: with different subscriptions, `sticky` can be better balanced, never worse. KIP-49.

    Examples
    --------
    >>> fair(Problem.of(topics={"t": 2}, members={"a": ["t"], "b": ["t"]})).by_member()
    {'a': {'t': [0]}, 'b': {'t': [1]}}
    """
    owner = np.full(problem.partition_total, -1, dtype=np.int32)
    loads = np.zeros(len(problem.members), dtype=np.int64)
    for topic in np.lexsort((-problem.partition_counts, problem.subscriber_counts)).tolist():
        subscribers = problem.subscribers_of(topic)
        if not subscribers.size:
            continue
        first, last = problem.topic_offsets[topic : topic + 2]
        dealt = fill(loads[subscribers], int(last - first))
        owner[first:last] = subscribers[dealt]
        loads[subscribers] += np.bincount(dealt, minlength=subscribers.size)
    return Assignment(problem, owner)
