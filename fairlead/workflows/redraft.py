"""The assignment of an earlier version as a draft, with the present lag.

Belongs here: weights, balance and moves of the draft. Does not: whether a rollback is possible
(`rollback`).
"""

from dataclasses import replace
from datetime import datetime

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from assignors.assignment import Assignment
from assignors.metrics import measure
from assignors.problem import Problem
from fairlead.common.tables import named
from fairlead.domain.as_problem import assignment_of, planned, problem_of
from fairlead.domain.groups import LiveGroup
from fairlead.domain.policy import Policy
from fairlead.domain.records import MeasuredLag, PlanDraft
from fairlead.domain.samples import new_snapshot_id
from fairlead.wire.document import PlanDocument


def draft_again(
    plan: PlanDocument,
    present: LiveGroup,
    lag: MeasuredLag | None,
    *,
    policy: Policy,
    why: str,
    reason: str,
    now: datetime,
) -> PlanDraft:
    """Return a plan's assignment as a new draft, compared with the present owners.

    Parameters
    ----------
    plan
        The earlier version.
    present
        The present group; the plan must fit it.
    lag
        The newest lag; topics without a complete measurement keep the weights of the plan.
    policy
        Defines the expiry, and whether the plan needs four eyes.
    why, reason
        The reason of each move, and of the plan.
    now
        The time of the draft.
    """
    plan = replace(plan, weights=_weights(plan, lag))
    owned = {member.name: member.partitions for member in present.members}
    problem = problem_of(plan, owned)
    after = assignment_of(problem, planned(plan))
    return PlanDraft(
        group=plan.group,
        snapshot_id=new_snapshot_id(now),
        snapshot_at=present.observed_at,
        reason=reason,
        observed=measure(problem, Assignment(problem, problem.owner)).as_dict(),
        assignor=plan.assignor,
        predicted=measure(problem, after).as_dict(),
        moves=_moves(problem, after, why),
        expires_at=None if policy.expires_after is None else now + policy.expires_after,
        partition_counts=plan.partition_counts,
        members=plan.members,
        weights=plan.weights,
        topic_ids=plan.topic_ids,
        four_eyes=policy.four_eyes,
    )


def _weights(plan: PlanDocument, lag: MeasuredLag | None) -> dict[str, npt.NDArray[np.float64]]:
    """Return each topic's newest lag; its weights in the plan if not measured completely."""
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
