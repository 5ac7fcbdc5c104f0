"""A group leader's decision at a rebalance: follow the plan if possible, otherwise use `range`.

Belongs here: the choice between plan and fallback, and its reason. Belongs elsewhere: reading the
plan (`plan_reader`), and a client's own types.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from assignors.problem import Member, Problem
from assignors.ranges import range_
from fairlead.followers.core.plan_cache import PlanState
from fairlead.wire.fit import Shares, fit
from fairlead.wire.members import GroupMember, member_names
from fairlead.wire.record import NOTHING
from fairlead.wire.record_reading import SKEW


@dataclass(frozen=True)
class Decision:
    """An assignment, and why it follows a plan or not.

    Parameters
    ----------
    shares
        The partition numbers of every member, by member id and topic.
    plan_version
        Version of the plan that the assignment follows; None: `range` made the assignment.
    fallback_reason
        Why `range` is used; None: the assignment follows a plan.
    """

    shares: Shares
    plan_version: int | None = None
    fallback_reason: str | None = None


def decide(
    state: PlanState,
    members: Sequence[GroupMember],
    partition_counts: Mapping[str, int],
    *,
    now: datetime,
) -> Decision:
    """Return the assignment of all members.

    Parameters
    ----------
    state
        The leader's knowledge of the plan.
    members
        All members of the group.
    partition_counts
        Maps each existing topic to its number of partitions.
    now
        The present time, time-zone-aware. A plan whose lease has expired is not followed.
    """
    plan = state.plan
    reason = why_not(state, now)
    if plan is None or reason is not None:
        return Decision(_range(members, partition_counts), fallback_reason=reason)
    names = member_names(members)
    shares = fit(
        plan, {names[member.member_id]: member.topics for member in members}, partition_counts
    )
    return Decision({member_id: shares[name] for member_id, name in names.items()}, plan.version)


def lapsed(state: PlanState, now: datetime) -> bool:
    """Whether there is a plan whose lease has expired."""
    until = state.lease_until
    return state.plan is not None and until is not None and now - SKEW >= until


def why_not(state: PlanState, now: datetime) -> str | None:
    """Return why the group cannot follow a plan; None if it can.

    Examples
    --------
    >>> from datetime import UTC
    >>> why_not(PlanState(), datetime.now(UTC))
    'no plan has been published'
    """
    if state.plan is not None:
        if not lapsed(state, now):
            return None
        return f"plan version {state.plan.version} expired at {state.lease_until}"
    if state.problem is not None:
        return f"there is no readable plan: {state.problem}"
    return "no plan has been published" if state.seen == NOTHING else "the plan was withdrawn"


def _range(members: Sequence[GroupMember], partition_counts: Mapping[str, int]) -> Shares:
    problem = Problem.of(
        partition_counts,
        {
            member.member_id: Member(
                sorted(set(member.topics)),  # other clients may repeat a topic
                instance_id=member.instance_id or None,
            )
            for member in members
        },
    )
    return range_(problem).by_member()
