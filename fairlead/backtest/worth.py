"""Whether a plan made from recorded lag alone would have been worth it.

Belongs here: the rule by which a replay, which knows no rates and no speeds, tells a plan from
noise. Does not: what decides on living groups (`fairlead.judgement`). Pure.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from fairlead.plans.choice import lightening
from fairlead.policy import Policy

#: The heaviest member's lag must fall by this share.
WORTH: Final = 0.01


def worth_it(
    policy: Policy,
    predicted: Mapping[str, Any],
    observed: Mapping[str, Any],
    *,
    changed_at: datetime | None,
    now: datetime,
) -> bool:
    """Whether a plan would have been made.

    It places partitions that have no owner, or else it moves some, no more than `max_moves`, after
    the policy's cooldown, and lightens the heaviest member by `WORTH`.

    Parameters
    ----------
    policy
        The group's.
    predicted, observed
        Metrics of the plan and of what was, on the same snapshot.
    changed_at
        When a plan was last published; None: never.
    now
        When the snapshot was taken.
    """
    if policy.max_moves is not None and predicted["moved"] > policy.max_moves:
        return False
    if predicted["placed"]:
        return True
    if policy.cooldown and changed_at is not None and now < changed_at + policy.cooldown:
        return False
    return bool(predicted["moved"]) and lightening(observed, predicted) >= WORTH
