"""The definition of a valid assignment.

Belongs here: the invariants that every assignor guarantees, as checked by tests, asset checks and
publication. Belongs elsewhere: the quality of an assignment (`metrics`).
"""

import numpy as np
import numpy.typing as npt

from assignors.assignment import Assignment
from assignors.problem import Int32, Problem

_SHOWN = 5


def violations(problem: Problem, assignment: Assignment) -> list[str]:
    """Return the violations of an assignment; an empty list if it is valid.

    An assignment is valid if it has one entry per partition, if each partition of a topic with
    subscribers has an owner, and if each owner is a member and subscribes to the topic.

    Parameters
    ----------
    problem
        P partitions, M members. May be another object than `assignment.problem`.
    assignment
        The assignment to check.

    Returns
    -------
    One sentence for each kind of violation, naming at most five partitions.

    Examples
    --------
    >>> problem = Problem.of({"t": 2, "u": 1}, {"a": ["t"], "b": ["u"]})
    >>> violations(problem, Assignment(problem, np.array([0, -1, 0], np.int32)))
    ['1 partitions have no owner: t-1', '1 partitions go to a member that does not subscribe: u-0']
    """
    owner = assignment.owner
    if owner.shape != (problem.partition_total,):
        return [f"{owner.size} owners for {problem.partition_total} partitions"]
    known = (owner >= -1) & (owner < len(problem.members))
    missing = known & (owner == -1) & problem.assignable
    assigned = np.flatnonzero(known & (owner >= 0))
    ineligible = np.zeros(owner.shape, dtype=bool)
    ineligible[assigned] = ~_subscribes(problem, owner[assigned], problem.topic_of[assigned])
    kinds = (
        (~known, "go to a member that does not exist"),
        (missing, "have no owner"),
        (ineligible, "go to a member that does not subscribe"),
    )
    return [
        f"{np.count_nonzero(mask)} partitions {what}: {_names(problem, np.flatnonzero(mask))}"
        for mask, what in kinds
        if mask.any()
    ]


def _subscribes(problem: Problem, members: Int32, topics: Int32) -> npt.NDArray[np.bool_]:
    """Return whether each member subscribes to the topic at the same index of `topics`."""
    if problem.dense:
        reads: npt.NDArray[np.bool_] = problem.reads[topics, members]
        return reads
    every = np.repeat(
        np.arange(len(problem.members), dtype=np.int64), np.diff(problem.subscription_offsets)
    )
    subscribed = every * len(problem.topics) + problem.subscription_topics  # in ascending order
    pairs = np.int64(len(problem.topics)) * members + topics
    nearest = np.append(subscribed, -1)[subscribed.searchsorted(pairs)]
    subscribes: npt.NDArray[np.bool_] = nearest == pairs
    return subscribes


def _names(problem: Problem, partitions: np.ndarray[tuple[int], np.dtype[np.int64]]) -> str:
    few = [problem.partition_label(index) for index in partitions[:_SHOWN].tolist()]
    return ", ".join(few) + (", ..." if partitions.size > _SHOWN else "")
