"""Automatic rollback: the previous version replaces a plan that made its group worse.

Belongs here: whether a person decides. Belongs elsewhere: detecting a regression
(`fairlead.domain.regression`), which version to return to (`record_regression` in
`migrations/sql/regression_checks.sql`), creating the new version (`rollback`), and withdrawing the
plan if there is no version to return to (`publication`).
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Final

from fairlead.domain.groups import LiveGroup
from fairlead.domain.policy import Policy, policy_for
from fairlead.domain.records import StoredPlan
from fairlead.domain.regression import Regression
from fairlead.errors import FairleadError
from fairlead.store.plans import PlanStore
from fairlead.store.regressions import OpenRegression, open_regressions, record_regression
from fairlead.workflows.proposal import APPROVER
from fairlead.workflows.rollback import rollback

_log = logging.getLogger(__name__)
#: Name of the actor of automatic rollbacks in the plan's history.
ACTOR: Final = "regression check"


def roll_back_regressions(
    store: PlanStore,
    regressions: Mapping[str, Regression],
    policies: Sequence[Policy],
    *,
    live: Callable[[str], LiveGroup],
    now: datetime,
) -> list[StoredPlan]:
    """Record published plans that made their groups worse, and propose rollbacks of these plans.

    If the group's policy approves plans automatically, the rollback is approved immediately, even
    if it does not meet the policy's conditions for approval, such as a minimum improvement.
    Otherwise the rollback waits for a person. If an earlier call crashed before it proposed a
    rollback, this call proposes it.

    Parameters
    ----------
    regressions
        Maps each group to its possible regression; uncertain regressions are ignored.
    live
        Returns the present description of a group.

    Returns
    -------
    The new versions. If there is no version to return to, because the plan is the first or follows
    a withdrawal, the publication pass withdraws the plan.
    """
    sure = {group: analysed for group, analysed in regressions.items() if analysed.sure}
    for plan in store.in_state("published", groups=sure) if sure else ():
        automatic = _automatic(policy_for(plan.group, policies))
        analysed = sure[plan.group]
        if record_regression(store.engine, plan.group, plan.version, analysed, automatic=automatic):
            _log.warning(
                "group %s: version %d caused a regression: %s",
                plan.group,
                plan.version,
                analysed.evidence,
            )
    versions = []
    for regression in open_regressions(store.engine):
        if regression.back_to is None:
            continue
        try:
            versions.append(
                _go_back(
                    store, regression, policy_for(regression.group, policies), live=live, now=now
                )
            )
        except FairleadError as error:  # tried again after the next sample
            _log.warning(
                "group %s: version %d cannot be rolled back: %s",
                regression.group,
                regression.version,
                error,
            )
    return versions


def _go_back(
    store: PlanStore,
    regression: OpenRegression,
    policy: Policy,
    *,
    live: Callable[[str], LiveGroup],
    now: datetime,
) -> StoredPlan:
    assert regression.back_to is not None  # noqa: S101 - otherwise it is withdrawn
    why = f"version {regression.version} caused a regression: {regression.evidence}"
    plan, _ = rollback(
        store,
        regression.group,
        regression.back_to,
        policy=policy,
        live=live,
        reason=why,
        now=now,
        actor=ACTOR,
    )
    if plan.state != "proposed" or not (regression.automatic and _automatic(policy)):
        return plan
    return store.approve(plan.group, plan.version, sha256=plan.sha256, reason=why, actor=APPROVER)


def _automatic(policy: Policy) -> bool:
    return policy.approval.automatic and not (policy.four_eyes or policy.shadow)
