"""Renewal: a published plan that still is the best known does not expire while the planner lives.

Belongs here: proposing it again before it expires. Does not: finding that nothing better is known
(`choice`), publishing (`publication`).
"""

from collections.abc import Callable
from datetime import datetime

from fairlead.kafka.gateway import LiveGroup
from fairlead.plans.again import draft_again
from fairlead.plans.basis import differences_from
from fairlead.plans.proposal import Outcome, propose, weigh
from fairlead.policy import Policy
from fairlead.store.plans import PlanStore
from fairlead.store.records import StoredPlan


def renew(
    store: PlanStore,
    plan: StoredPlan,
    *,
    policy: Policy,
    live: Callable[[str], LiveGroup],
    now: datetime,
) -> Outcome | None:
    """Propose a published plan's assignment again, with a new expiry.

    Parameters
    ----------
    store
        The plan store.
    plan
        Published, and about to expire: one of `PlanStore.expiring`.
    policy
        The group's.
    live
        Describes the group as it is now.
    now
        When the new version is made.

    Returns
    -------
    None where another version waits, or the group is no longer what the plan was made for.

    Raises
    ------
    TamperedPlanError
        The stored bytes are not the approved ones.
    GroupError, KafkaUnavailableError
        The group cannot be described.
    """
    document = plan.verify()
    present = live(plan.group)
    if store.waiting([plan.group]) or differences_from(document, present):
        return None
    lag = store.newest_lag(plan.group)
    draft = draft_again(
        document,
        present,
        lag,
        policy=policy,
        why=f"renewal of version {plan.version}",
        reason=f"renewal of version {plan.version}, which expires at {plan.expires_at}",
        now=now,
    )
    answer = weigh(draft, policy, lag.statuses if lag else frozenset(), now)
    return propose(store, [(draft, answer)])[0]
