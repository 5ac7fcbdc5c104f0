"""One assignor in charge of a recorded group: what is in force at each snapshot, and what it costs.

Belongs here: carrying an assignment from snapshot to snapshot as the group would have. Does not:
reading snapshots (`spark`), the rules of assignment (`assignors`) and of policies
(`fairlead.plans`), nor condensing the result (`report`). Pure.

The lag of every snapshot is taken as it was recorded. Under another assignment it would have
evolved differently; a replay does not know how.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final, Protocol

import numpy as np

from assignors.assignment import Assignment
from assignors.metrics import Metrics, measure
from assignors.problem import Int32, InvalidProblemError, Problem
from assignors.registry import assign
from fairlead.backtest.worth import worth_it
from fairlead.followers.fit import fit
from fairlead.plans.approval import PlanFacts, decide
from fairlead.plans.as_problem import assignment_of
from fairlead.plans.choice import lightening
from fairlead.plans.document import MemberShare, PlanDocument
from fairlead.policy import Policy

OBSERVED: Final = "observed"
"""The name under which the group's recorded assignments are replayed, as they were."""

LAG_BLIND: Final = frozenset({"range", "roundrobin", "fair", "sticky"})
"""Assignors that do not look at lag: nothing but a rebalance can change their mind."""


@dataclass(frozen=True, eq=False)
class Snapshot:
    """A group at one moment.

    Parameters
    ----------
    at
        When; time-zone-aware.
    problem
        Its members, partitions and lags; `owner` is who owned what.
    statuses
        Those that its partitions had.
    """

    at: datetime
    problem: Problem
    statuses: frozenset[str] = frozenset({"OK"})


@dataclass(frozen=True)
class Moment:
    """What a replay comes to at one snapshot.

    Parameters
    ----------
    at
        When the snapshot was taken.
    heaviest, mean, lower_bound
        Records behind, of the assignment that is in force when the snapshot is taken: the heaviest
        member's, the mean, and what no assignment can go below.
    moved
        Partitions whose owner is another one than before although that one is still there: in
        rebalances since the snapshot before, and by the plan published at this one.
    published
        Whether a plan is published. It is in force from the next snapshot on.
    held_back
        Whether a plan is made that the policy does not approve.
    """

    at: datetime
    heaviest: int
    mean: float
    lower_bound: int
    moved: int
    published: bool = False
    held_back: bool = False


def replay(snapshots: Iterable[Snapshot], assignor: str, policy: Policy) -> Iterator[Moment]:
    """Put an assignor in charge of a group from the first snapshot on.

    Every replay starts from what the group owned at the first snapshot; from then on it knows
    only what it has assigned itself.

    - Assignors that do not look at lag (`LAG_BLIND`) decide as they do in consumers, at
      rebalances: at the first snapshot, where they take over, and whenever members, subscriptions
      or partition counts have changed.
    - The others plan at every snapshot, as the planner does. Their plan is published when the
      policy finds it worth it and approves it; where the policy leaves plans to people, people
      approve them all, at once. At a rebalance, members fit the plan to who is there, as
      followers do.
    - `OBSERVED` is what the group really had.

    Parameters
    ----------
    snapshots
        Of one group, in order of time.
    assignor
        A name of `assignors.registry`, or `OBSERVED`.
    policy
        The group's. Of its assignors this one alone is considered, named or not.

    Raises
    ------
    InvalidProblemError
        There is no such assignor, or a `LAG_BLIND` one has not the options of the policy.

    Examples
    --------
    >>> from datetime import UTC
    >>> group = Problem.of({"t": 2}, {"a": ["t"], "b": ["t"]}, {"t": [3, 1]})
    >>> alone = replace(group, owner=np.zeros(2, np.int32))  # a owns both
    >>> day = [Snapshot(datetime(2026, 1, 1, hour, tzinfo=UTC), alone) for hour in (0, 1)]
    >>> for name in (OBSERVED, "lag-aware", "roundrobin"):
    ...     moments = replay(day, name, Policy())
    ...     print(name, [(moment.heaviest, moment.moved) for moment in moments])
    observed [(4, 0), (4, 0)]
    lag-aware [(4, 1), (3, 0)]
    roundrobin [(3, 1), (3, 0)]
    """
    charge = _charge(assignor, policy)
    before: Assignment | None = None
    for snapshot in snapshots:
        problem = snapshot.problem
        if before is None:
            carried = problem.owner
            started = True
        else:
            started = not _same_group(before.problem, problem)
            carried = _carried(before, problem) if started else before.owner
        in_force = carried
        if started or assignor == OBSERVED:
            in_force = charge.rebalance(replace(problem, owner=carried), snapshot)
        standing = replace(problem, owner=in_force)
        figures = measure(standing, Assignment(standing, in_force))
        decision = charge.plan(standing, figures, snapshot)
        after = in_force if decision.owner is None else decision.owner
        yield Moment(
            at=snapshot.at,
            heaviest=figures.lag_max,
            mean=figures.lag_mean,
            lower_bound=figures.lag_lower_bound,
            moved=_moved(carried, in_force) + _moved(in_force, after),
            published=decision.owner is not None,
            held_back=decision.held_back,
        )
        before = Assignment(standing, after)


@dataclass(frozen=True, eq=False)
class _Decision:
    """What is done at a snapshot: a plan's owners, int32 of shape (P,), or none is published."""

    owner: Int32 | None = None
    held_back: bool = False


class _Charge(Protocol):
    """A way to be in charge of a group."""

    def rebalance(self, problem: Problem, snapshot: Snapshot) -> Int32:
        """Return who owns what after a rebalance, int32 of shape (P,).

        `problem` is the snapshot's, with the owners of before as far as they are there still.
        """
        ...

    def plan(self, problem: Problem, figures: Metrics, snapshot: Snapshot) -> _Decision:
        """Decide at a snapshot; `problem` and `figures` are those of what is in force."""
        ...


class _Recorded:
    """Whoever was really in charge."""

    def rebalance(self, problem: Problem, snapshot: Snapshot) -> Int32:  # noqa: ARG002 - a _Charge
        return snapshot.problem.owner

    def plan(self, *_: object) -> _Decision:
        return _Decision()


class _InConsumers:
    """An assignor that the group's leader runs at each rebalance, as Kafka's own."""

    def __init__(self, assignor: str, options: Mapping[str, Any]) -> None:
        self._assignor, self._options = assignor, options

    def rebalance(self, problem: Problem, snapshot: Snapshot) -> Int32:  # noqa: ARG002 - a _Charge
        return assign(self._assignor, problem, **self._options).owner

    def plan(self, *_: object) -> _Decision:
        return _Decision()


class _ByPlans:
    """An assignor whose plans the policy publishes, and that followers fit to who is there."""

    def __init__(self, assignor: str, policy: Policy) -> None:
        self._assignor = assignor
        self._options = policy.assignor_options(assignor)
        self._policy = policy
        self._by_hand = policy.four_eyes or not policy.approval.automatic
        self._published: PlanDocument | None = None
        self._published_at: datetime | None = None

    def rebalance(self, problem: Problem, snapshot: Snapshot) -> Int32:
        if self._published is None:  # taking over: what is there stands for the first plan
            self._published = _document(Assignment(problem, problem.owner), snapshot.at)
        counts = dict(zip(problem.topics, problem.partition_counts.tolist(), strict=True))
        shares = fit(self._published, _subscriptions(problem), counts)
        return assignment_of(problem, shares).owner

    def plan(self, problem: Problem, figures: Metrics, snapshot: Snapshot) -> _Decision:
        observed = figures.as_dict()
        try:
            planned = assign(self._assignor, problem, **self._options)
        except InvalidProblemError:
            return _Decision()
        predicted: Mapping[str, Any] = measure(problem, planned).as_dict()
        if not worth_it(
            self._policy, predicted, observed, changed_at=self._published_at, now=snapshot.at
        ):
            return _Decision()
        facts = PlanFacts(
            moved=predicted["moved"],
            placed=predicted["placed"],
            improvement=lightening(observed, predicted),
            statuses=snapshot.statuses,
        )
        if not self._by_hand and not decide(self._policy, facts, snapshot.at).approved:
            return _Decision(held_back=True)
        self._published, self._published_at = _document(planned, snapshot.at), snapshot.at
        return _Decision(planned.owner)


def _charge(assignor: str, policy: Policy) -> _Charge:
    if assignor == OBSERVED:
        return _Recorded()
    if assignor in LAG_BLIND:
        return _InConsumers(assignor, policy.assignor_options(assignor))
    return _ByPlans(assignor, policy)


def _same_group(one: Problem, other: Problem) -> bool:
    """Whether nothing that would start a rebalance differs: members, subscriptions, partitions."""
    return (
        one.members == other.members
        and one.topics == other.topics
        and np.array_equal(one.partition_counts, other.partition_counts)
        and np.array_equal(one.subscription_offsets, other.subscription_offsets)
        and np.array_equal(one.subscription_topics, other.subscription_topics)
    )


def _carried(before: Assignment, problem: Problem) -> Int32:
    """Return who of a changed group still owns what it owned before, int32 of shape (P,)."""
    subscriptions = _subscriptions(problem)
    kept = {
        member: {topic: numbers for topic, numbers in share.items() if topic in read}
        for member, share in before.by_member().items()
        if (read := subscriptions.get(member)) is not None
    }
    return assignment_of(problem, kept).owner


def _moved(before: Int32, after: Int32) -> int:
    return int(((before >= 0) & (after >= 0) & (before != after)).sum())


def _subscriptions(problem: Problem) -> dict[str, list[str]]:
    rows = np.split(problem.subscription_topics, problem.subscription_offsets[1:-1])
    return {
        member: [problem.topics[topic] for topic in row]
        for member, row in zip(problem.members, rows, strict=True)
    }


def _document(assignment: Assignment, at: datetime) -> PlanDocument:
    """Write an assignment as the plan that followers fit; nobody reads who made it, and when."""
    problem = assignment.problem
    subscriptions = _subscriptions(problem)
    return PlanDocument(
        group="",
        version=1,
        plan_id="",
        assignor="",
        created_at=at,
        snapshot_at=at,
        partition_counts=dict(zip(problem.topics, problem.partition_counts.tolist(), strict=True)),
        members={
            member: MemberShare(
                topics=tuple(subscriptions[member]),
                partitions={topic: np.array(row, np.int32) for topic, row in share.items()},
            )
            for member, share in assignment.by_member().items()
        },
        weights=dict(
            zip(
                problem.topics,
                np.split(problem.weights.astype(np.float64), problem.topic_offsets[1:-1]),
                strict=True,
            )
        ),
    )
