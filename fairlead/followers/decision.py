"""What the leader of a group decides at a rebalance: the plan if there is a good one, else range.

Belongs here: plan or fallback, and why. Does not: where the plan comes from (`plan_reader`), nor a
client's own types.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np

from fairlead.followers.fit import Shares, fit
from fairlead.followers.members import GroupMember, member_names
from fairlead.followers.plan_cache import PlanState


@dataclass(frozen=True, eq=False)
class Decision:
    """Who reads what, and on what grounds.

    Parameters
    ----------
    shares
        Member id to topic to partition numbers; every member is present.
    plan_version
        The plan that is followed; None: range.
    reason
        Why range is used; None: it is not.
    """

    shares: Shares
    plan_version: int | None = None
    reason: str | None = None


def decide(
    state: PlanState,
    members: Sequence[GroupMember],
    partition_counts: Mapping[str, int],
    *,
    now: datetime,
) -> Decision:
    """Decide for the whole group.

    Parameters
    ----------
    state
        What the leader knows of the plan.
    members
        All members of the group.
    partition_counts
        Topic to number of partitions; subscribed topics that do not exist are absent.
    now
        Time-zone-aware: an expired plan is not followed.
    """
    plan = state.plan
    if plan is None:
        reason = f"there is no readable plan: {state.problem}" if state.problem else "no plan"
    elif plan.expired(now):
        reason = f"plan version {plan.version} expired at {plan.expires_at}"
    else:
        names = member_names(members)
        shares = fit(
            plan,
            {names[member.member_id]: member.topics for member in members},
            partition_counts,
        )
        return Decision(
            {member_id: shares[name] for member_id, name in names.items()}, plan.version
        )
    return Decision(range_shares(members, partition_counts), reason=reason)


def range_shares(members: Sequence[GroupMember], partition_counts: Mapping[str, int]) -> Shares:
    """Deal each topic as Kafka's RangeAssignor does: static members first, by instance id."""
    shares: Shares = {member.member_id: {} for member in members}
    ordered = sorted(
        members,
        key=lambda member: (member.instance_id is None, member.instance_id or "", member.member_id),
    )
    for topic, count in sorted(partition_counts.items()):
        readers = [member.member_id for member in ordered if topic in member.topics]
        pieces = np.array_split(np.arange(count, dtype=np.int32), max(1, len(readers)))
        for reader, piece in zip(readers, pieces, strict=False):
            if piece.size:
                shares[reader][topic] = piece
    return shares
