"""Rollback: propose the assignment of an old version as a new version.

Belongs here: conditions of a rollback, and its draft with the present lag. Belongs elsewhere:
approving it (`automatic_rollback`, or a person) and publishing it (`publication`).
"""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from uuid import UUID

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from assignors.assignment import Assignment
from assignors.metrics import measure
from assignors.problem import Problem
from fairlead.common.tables import named
from fairlead.domain.approval import ApprovalDecision
from fairlead.domain.as_problem import assignment_of, planned, problem_of
from fairlead.domain.basis import differences_from
from fairlead.domain.groups import LiveGroup
from fairlead.domain.policy import Policy
from fairlead.domain.records import MeasuredLag, PlanDraft, StoredPlan
from fairlead.domain.samples import new_snapshot_id
from fairlead.errors import PlanStateError, StalePlanError
from fairlead.store.plans import PlanStore
from fairlead.wire.document import PlanDocument
from fairlead.workflows.proposal import propose, weigh


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
    request_id: UUID | None = None,
) -> tuple[StoredPlan, ApprovalDecision]:
    """Propose the assignment of an old version again, as the group's next version.

    Like any version, the new version needs approval by the policy or a person. The policy's
    cooldown, a minimum time between plans, does not delay the new version.

    Parameters
    ----------
    store
        The plan store.
    group, version
        The group, and the version to return to. The version must have been published once, because
        a rollback is sent even if the group is frozen.
    policy
        The group's policy, which defines expiry and approval of the new version.
    live
        Returns the present description of the group.
    reason
        The reason; stored in the plan's history.
    now
        The time of the new version.
    actor
        The person who requests the rollback; None: only the database's session user is known.
    request_id
        Id of the request from a page; None: it was not requested on a page.

    Returns
    -------
    The new version, and the policy's decision on its approval.

    Raises
    ------
    PlanStateError
        The version does not exist, is published now, or was never published.
    StalePlanError
        The group has changed since the version was made; the message lists the differences.
    TamperedPlanError
        The stored bytes of the version were changed.
    GroupError, KafkaUnavailableError
        The group cannot be described.
    """
    old = store.get(group, version)
    plan = old.verify()
    if old.state == "published":
        raise PlanStateError(f"group {group}: version {version} is already published")
    if not old.was_followed:
        raise PlanStateError(
            f"group {group}: version {version} is {old.state}: no consumer followed it,"
            " so no rollback to it is possible"
        )
    present = live(group)
    if different := differences_from(plan, present):
        raise StalePlanError(
            f"group {group}: version {version} no longer fits the group: {'; '.join(different)}"
        )
    lag = store.newest_lag(group)
    plan = replace(plan, weights=_weights(plan, lag))
    problem = problem_of(plan, {member.name: member.partitions for member in present.members})
    after = assignment_of(problem, planned(plan))
    back, by = f"rollback to version {version}", f" (requested by {actor})" if actor else ""
    draft = PlanDraft(
        group=group,
        snapshot_id=new_snapshot_id(now),
        snapshot_at=present.observed_at,
        reason=f"{back}: {reason}{by}",
        observed=measure(problem, Assignment(problem, problem.owner)).as_dict(),
        assignor=plan.assignor,
        predicted=measure(problem, after).as_dict(),
        moves=_moves(problem, after, back),
        expires_at=None if policy.expires_after is None else now + policy.expires_after,
        partition_counts=plan.partition_counts,
        members=plan.members,
        weights=plan.weights,
        topic_ids=plan.topic_ids,
        four_eyes=policy.four_eyes,
        rolled_back_from=version,
        request_id=request_id,
    )
    approval = weigh(draft, policy, lag.statuses if lag else frozenset(), now)
    stored = propose(store, [(draft, approval)])[0].stored.plan
    assert stored is not None  # noqa: S101 - a draft is stored as a plan
    return store.get(group, stored.version), approval


def _weights(plan: PlanDocument, lag: MeasuredLag | None) -> dict[str, npt.NDArray[np.float64]]:
    """Return the weights of each topic's partitions.

    The weights of a topic are its partitions' newest lags. If one of these lags is unknown, the
    topic has the weights of the old plan; without such weights, 0.
    """
    measured = lag.lags if lag else {}
    return {
        topic: measured[topic]
        if topic in measured and measured[topic].size == count
        else plan.weights.get(topic, np.zeros(count))
        for topic, count in plan.partition_counts.items()
    }


def _moves(problem: Problem, after: Assignment, reason: str) -> pa.Table:
    """Return the partitions whose owner changes, in the form of `PlanDraft.moves`."""
    changed = np.flatnonzero(problem.owner != after.owner)
    topics = problem.topic_of[changed]
    return pa.table(
        {
            "topic": named(topics, problem.topics),
            "partition": pa.array((changed - problem.topic_offsets[topics]).astype(np.int32)),
            "previous_member": named(problem.owner[changed], problem.members),
            "member": named(after.owner[changed], problem.members),
            "weight": problem.weights[changed].astype(np.float64),
            "reason": pa.repeat(pa.scalar(reason), changed.size),
        }
    )
