"""Rollback: an old version's assignment, as a new version.

Belongs here: conditions of a rollback. Does not: its figures (`redraft`), nor
publishing it, which needs approval like any plan (`publication`).
"""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from uuid import UUID

from fairlead.domain.approval import ApprovalDecision
from fairlead.domain.basis import differences_from
from fairlead.domain.groups import LiveGroup
from fairlead.domain.policy import Policy
from fairlead.domain.records import StoredPlan
from fairlead.errors import PlanStateError, StalePlanError
from fairlead.store.plans import PlanStore
from fairlead.workflows.proposal import propose, weigh
from fairlead.workflows.redraft import draft_again


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
    """Propose an old version's assignment again, as the group's next version.

    The new version needs approval like any other, by the policy or a person. The policy's cooldown
    does not delay it.

    Parameters
    ----------
    store
        The plan store.
    group, version
        The group, and the version to return to. It must have been followed, since a rollback is
        sent even if the group is frozen.
    policy
        The group's policy: expiry and approval of the new version.
    live
        Returns the present description of the group.
    reason
        The reason; stored in the plan's history.
    now
        The time of the new version.
    actor
        The person who requests it; None: only the database's session user is known.
    request_id
        The request from a page; None: there is none.

    Returns
    -------
    The new version, and the policy's decision on its approval.

    Raises
    ------
    PlanStateError
        The version does not exist, is published now, or was never published.
    StalePlanError
        The group differs from the version's basis; the message has every difference.
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
            " so it cannot be rolled back to"
        )
    present = live(group)
    if different := differences_from(plan, present):
        raise StalePlanError(
            f"group {group}: version {version} no longer fits: {'; '.join(different)}"
        )
    lag = store.newest_lag(group)
    by = f" (requested by {actor})" if actor else ""
    draft = draft_again(
        plan,
        present,
        lag,
        policy=policy,
        why=f"rollback to version {version}",
        reason=f"rollback to version {version}: {reason}{by}",
        now=now,
    )
    draft = replace(draft, rolled_back_from=version, request_id=request_id)
    approval = weigh(draft, policy, lag.statuses if lag else frozenset(), now)
    stored = propose(store, [(draft, approval)])[0].stored.plan
    assert stored is not None  # noqa: S101 - a draft is stored as a plan
    return store.get(group, stored.version), approval
