"""Plans as assignment problems, for the metrics and the verifier of assignors.

Belongs here: converting documents to arrays. Belongs elsewhere: metrics and verifier (`assignors`).
"""

from collections.abc import Collection, Mapping
from typing import Protocol

import numpy as np

from assignors.assignment import Assignment
from assignors.problem import Member, Problem
from fairlead.wire.document import MemberShare, PlanDocument

#: The numbers of the partitions that each member owns, by member and topic.
Ownership = Mapping[str, Mapping[str, Collection[int]]]


class Shares(Protocol):
    """A plan document or its draft: both give each member a share of the partitions."""

    @property
    def members(self) -> Mapping[str, MemberShare]:
        """Maps each member name to the member's subscription and partitions."""
        ...


def planned(plan: Shares) -> Ownership:
    """Return the partitions that a plan gives to each member."""
    return {
        name: {topic: numbers.tolist() for topic, numbers in share.partitions.items()}
        for name, share in plan.members.items()
    }


def problem_of(
    plan: PlanDocument,
    owned: Ownership,
    subscriptions: Mapping[str, Collection[str]] | None = None,
) -> Problem:
    """Return the assignment problem that a plan solves.

    Parameters
    ----------
    plan
        The plan from which topics, partition counts and subscriptions are taken. Its lags in
        records become the weights.
    owned
        Present owners. Members that are not in the plan are added, with subscriptions to the topics
        in which they own partitions. Topics and partitions that are not in the plan are left out.
    subscriptions
        Subscriptions of all members of the problem; None: the members are those of the plan and
        the present owners.
    """
    if subscriptions is None:
        subscriptions = {name: share.topics for name, share in plan.members.items()}
        new = {name: tuple(share) for name, share in owned.items()}
        subscriptions = {**new, **subscriptions}
    return Problem.of(
        topics=plan.partition_counts,
        members={
            name: Member(topics=sorted(set(topics)), owned=owned.get(name, {}))
            for name, topics in subscriptions.items()
        },
        lags={topic: values.astype(np.int64) for topic, values in plan.weights.items()},
    )


def assignment_of(problem: Problem, owned: Ownership) -> Assignment:
    """Return an assignment with these owners; if a partition has several, the last one is used."""
    members = {name: index for index, name in enumerate(problem.members)}
    topics = {topic: index for index, topic in enumerate(problem.topics)}
    owner = np.full(problem.partition_total, -1, dtype=np.int32)
    for name, partitions in owned.items():
        for topic, numbers in partitions.items():
            if topic in topics:
                index = topics[topic]
                inside = [number for number in numbers if number < problem.partition_counts[index]]
                owner[problem.topic_offsets[index] + np.array(inside, np.int64)] = members[name]
    return Assignment(problem, owner)
