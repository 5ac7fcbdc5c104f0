"""Controllers decide which member reads which partition in a simulation.

Belongs here: the interface of controllers, and the base class of those that make plans. Belongs
elsewhere: the rules by which they plan (`fairlead.surfaces.backtest.replay`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, Protocol

import numpy as np

from assignors.assignment import Assignment
from assignors.problem import Problem
from assignors.registry import assign
from fairlead.domain.analysis.sample_series import SampleSeries
from fairlead.domain.as_problem import assignment_of
from fairlead.simulation.world import Int32
from fairlead.wire.document import MemberShare, PlanDocument
from fairlead.wire.fit import fit

#: Time at which every simulation begins.
START: Final = datetime(2026, 3, 2, tzinfo=UTC)


@dataclass(frozen=True, eq=False)
class Moment:
    """Input of a controller at one time.

    Parameters
    ----------
    at
        Seconds since the epoch.
    problem
        The present members and partitions. A partition's weight is its lag: its end offset minus
        its committed offset.
    series
        Returns the samples so far (`SampleHistory`). Call it only if necessary, since it is slow.
    """

    at: float
    problem: Problem
    series: Callable[[], SampleSeries]


class Controller(Protocol):
    """Decides which member reads which partition."""

    def rebalance(self, moment: Moment) -> Int32:
        """Return the owners after a rebalance, int32 of shape (P,)."""
        ...

    def decide(self, moment: Moment) -> Int32 | None:
        """Return the owners in a new plan, int32 of shape (P,); None: no change."""
        ...


class ByPlans:
    """Makes plans, and fits the last plan to the present members at a rebalance."""

    def __init__(self) -> None:
        self._plan: PlanDocument | None = None
        #: Times when plans took effect, in seconds since the epoch, ascending.
        self.changes: list[float] = []

    def rebalance(self, moment: Moment) -> Int32:
        """Fit the last plan to the present members; without a plan, assign by `range`."""
        problem = moment.problem
        if self._plan is None:
            return assign("range", problem).owner
        counts = dict(zip(problem.topics, problem.partition_counts.tolist(), strict=True))
        return assignment_of(problem, fit(self._plan, subscriptions(problem), counts)).owner

    def decide(self, moment: Moment) -> Int32 | None:
        """Make a plan, and remember it for rebalances."""
        owner = self.plan(moment)
        if owner is None:
            return None
        self.take_over(moment, owner)
        self.changes.append(moment.at)
        return owner

    def take_over(self, moment: Moment, owner: Int32) -> None:
        """Remember an assignment as the plan that later rebalances follow."""
        self._plan = document(Assignment(moment.problem, owner), moment.at)

    def plan(self, moment: Moment) -> Int32 | None:
        """Return the owners in a new plan, int32 of shape (P,); None: no change."""
        raise NotImplementedError


def document(assignment: Assignment, at: float) -> PlanDocument:
    """Return an assignment as a plan document, to be fitted to the present members."""
    problem = assignment.problem
    read = subscriptions(problem)
    when = datetime.fromtimestamp(at, UTC)
    weights = np.split(problem.weights.astype(np.float64), problem.topic_offsets[1:-1])
    return PlanDocument(
        group="simulated",
        version=1,
        plan_id="",
        assignor="",
        created_at=when,
        snapshot_at=when,
        partition_counts=dict(zip(problem.topics, problem.partition_counts.tolist(), strict=True)),
        members={
            member: MemberShare(
                topics=read[member],
                partitions={topic: np.array(row, np.int32) for topic, row in share.items()},
            )
            for member, share in assignment.by_member().items()
        },
        weights=dict(zip(problem.topics, weights, strict=True)),
    )


def subscriptions(problem: Problem) -> dict[str, tuple[str, ...]]:
    """Return the topics to which each member subscribes."""
    rows = np.split(problem.subscription_topics, problem.subscription_offsets[1:-1])
    return {
        member: tuple(problem.topics[topic] for topic in row)
        for member, row in zip(problem.members, rows, strict=True)
    }
