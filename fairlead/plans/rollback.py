"""Rollback: an old version's assignment, as a new version.

Belongs here: whether the old assignment still fits, and what the new version says of itself. Does
not: publishing it, which takes approval as any plan does (`publication`).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime

import numpy as np
import pyarrow as pa

from assignors.assignment import Assignment
from assignors.metrics import measure
from assignors.problem import Problem
from fairlead.errors import PlanStateError, StalePlanError
from fairlead.kafka.gateway import LiveGroup
from fairlead.kafka.snapshot import new_snapshot_id
from fairlead.plans.approval import ApprovalDecision
from fairlead.plans.as_problem import assignment_of, planned, problem_of
from fairlead.plans.basis import differences_from
from fairlead.plans.document import PlanDocument
from fairlead.plans.proposal import propose, weigh
from fairlead.policy import Policy
from fairlead.store.plans import PlanStore
from fairlead.store.records import MeasuredLag, PlanDraft, StoredPlan


@dataclass(frozen=True)
class RolledBack:
    """The new version, and what the policy says of publishing it unasked."""

    plan: StoredPlan
    approval: ApprovalDecision


def rollback(
    store: PlanStore,
    group: str,
    version: int,
    *,
    policy: Policy,
    live: Callable[[str], LiveGroup],
    reason: str,
    now: datetime,
    actor: str | None = None,
) -> RolledBack:
    """Propose an old version's assignment again, as the group's next version.

    The new version is approved as any other, by the policy or by a person, and published after.
    The policy's cooldown does not hold it up.

    Parameters
    ----------
    store
        The plan store.
    group, version
        Whose plan, and which of its versions to go back to, in whatever state it ended.
    policy
        The group's: when the new version expires, and who approves it.
    live
        Describes the group as it is now.
    reason
        Why; stands in the plan's history.
    now
        When the new version is made.
    actor
        Who asks for it; None: the database's session user alone is known.

    Raises
    ------
    PlanStateError
        There is no such version, or it is the one that is published.
    StalePlanError
        The group is no longer what that version was made for; every difference is named.
    TamperedPlanError
        The version's stored bytes are not those that were stored first.
    GroupError, KafkaUnavailableError
        The group cannot be described.
    """
    old = store.get(group, version)
    plan = old.verify()
    if old.state == "published":
        raise PlanStateError(f"group {group}: version {version} is the one that is published")
    present = live(group)
    if different := differences_from(plan, present):
        raise StalePlanError(
            f"group {group}: version {version} no longer fits: {'; '.join(different)}"
        )
    lag = store.newest_lag(group)
    by = f" (asked for by {actor})" if actor else ""
    draft = _draft(
        old,
        replace(plan, weights=_weights(plan, lag)),
        present,
        policy=policy,
        reason=f"rollback to version {version}: {reason}{by}",
        now=now,
    )
    approval = weigh(draft, policy, lag.statuses if lag else frozenset(), now)
    stored = propose(store, draft, approval).stored.plan
    assert stored is not None  # noqa: S101 - a draft is stored as a plan
    return RolledBack(store.get(group, stored.version), approval)


def _draft(
    old: StoredPlan,
    plan: PlanDocument,
    present: LiveGroup,
    *,
    policy: Policy,
    reason: str,
    now: datetime,
) -> PlanDraft:
    """Return the old assignment as a draft, measured against what the group owns now."""
    owned = {member.name: member.partitions for member in present.members}
    problem = problem_of(plan, owned)
    after = assignment_of(problem, planned(plan))
    return PlanDraft(
        group=old.group,
        snapshot_id=new_snapshot_id(now),
        snapshot_at=present.observed_at,
        reason=reason,
        observed=measure(problem, Assignment(problem, problem.owner)).as_dict(),
        assignor=old.assignor,
        predicted=measure(problem, after).as_dict(),
        moves=_moves(problem, after, f"rollback to version {old.version}"),
        expires_at=None if policy.expires_after is None else now + policy.expires_after,
        partition_counts=plan.partition_counts,
        members=plan.members,
        weights=plan.weights,
        four_eyes=policy.four_eyes,
        rolled_back_from=old.version,
    )


def _weights(plan: PlanDocument, lag: MeasuredLag | None) -> dict[str, np.ndarray]:
    """Return the newest lag of each topic; where it was not measured whole, the plan's own."""
    measured = lag.lags if lag else {}
    return {
        topic: measured[topic]
        if topic in measured and measured[topic].size == count
        else plan.weights.get(topic, np.zeros(count))
        for topic, count in plan.partition_counts.items()
    }


def _moves(problem: Problem, after: Assignment, reason: str) -> pa.Table:
    """Return the partitions whose owner changes, as `PlanDraft` has them."""
    changed = np.flatnonzero(problem.owner != after.owner)
    topics = problem.topic_of[changed]

    def names(owners: np.ndarray) -> pa.Array:
        found = [problem.members[owner] if owner >= 0 else None for owner in owners.tolist()]
        return pa.array(found, pa.string())

    return pa.table(
        {
            "topic": pa.array([problem.topics[topic] for topic in topics.tolist()], pa.string()),
            "partition": pa.array((changed - problem.topic_offsets[topics]).astype(np.int32)),
            "previous_member": names(problem.owner[changed]),
            "member": names(after.owner[changed]),
            "weight": problem.weights[changed].astype(np.float64),
            "reason": pa.repeat(pa.scalar(reason), changed.size),
        }
    )
