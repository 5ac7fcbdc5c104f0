"""Fair assignment (KIP-49): each partition to its least-loaded eligible member.

Belongs here: the order of topics. Does not: dealing one topic (`filling`), keeping owners
(`sticky`).
"""

import numpy as np

from assignors.assignment import Assignment
from assignors.filling import fill
from assignors.problem import Problem


def fair(problem: Problem) -> Assignment:
    """Assign every partition to the eligible member with the fewest partitions so far.

    Topics with the fewest subscribers come first, then those with more partitions, then by name, so
    that the most constrained choices come first. Ties go to the member with the fewest partitions
    of the topic, then to the first by name.

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
    O(P log P + T M log M): a topic is dealt by raising the lowest loads to a common level. With
    different subscriptions, `sticky` is balanced as well or better. KIP-49.

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
