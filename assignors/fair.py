"""Fair assignment (KIP-49): each partition to its least-loaded eligible member.

Belongs here: the order of topics. Belongs elsewhere: dealing out one topic (`filling`), keeping
owners (`sticky`).
"""

import numpy as np

from assignors.assignment import Assignment
from assignors.filling import fill
from assignors.problem import Problem


def fair(problem: Problem) -> Assignment:
    """Assign every partition to the eligible member with the fewest partitions so far.

    Topics are assigned in this order: fewest subscribers first (they leave the least choice), then
    most partitions, then by name. If several members have the fewest partitions, the partition goes
    to the one with the fewest partitions of the same topic, then to the first by name.

    Parameters
    ----------
    problem
        P partitions of T topics, M members. Weights and current owners are ignored.

    Returns
    -------
    Assignment
        `owner`, int32 of shape (P,): member index, or -1 if the topic has no subscriber.

    Notes
    -----
    O(P log P + T M log M), as a topic's partitions are dealt out in one computation (`filling`).
    With different subscriptions, `sticky` is at least as balanced. KIP-49.

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
