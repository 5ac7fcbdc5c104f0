"""Renewal, on a real store: what is to stay is proposed again in time."""

from collections.abc import Callable
from datetime import datetime, timedelta

import pytest

from fairlead.kafka.gateway import LiveGroup
from fairlead.plans.proposal import Outcome
from fairlead.plans.renewal import renew
from fairlead.policy import Approval, Policy
from fairlead.store import PlanStore, StoredPlan
from tests.fairlead.plans.plans import as_planned, emptied

pytestmark = pytest.mark.postgres

Step = Callable[..., StoredPlan]
SIX_HOURS = timedelta(hours=6)
POLICY = Policy(
    expires_after=SIX_HOURS, approval=Approval(automatic=True, max_moves=0, min_improvement=0.1)
)


def following(group: str) -> LiveGroup:
    """Describe a group that follows the store's usual draft."""
    return as_planned(group, {"orders-1": [0], "orders-2": [1, 2]})


@pytest.fixture
def published(publish: Step) -> StoredPlan:
    """Return a published plan that was made for six hours from now."""
    made = publish("unlimited", group="another").created_at
    return publish(expires_at=made + SIX_HOURS)


def renewed(store: PlanStore, now: datetime, live: Callable[[str], LiveGroup]) -> Outcome | None:
    (plan,) = store.expiring(["orders", "another"], now)
    return renew(store, plan, policy=POLICY, live=live, now=now)


def test_plan_is_renewed_from_half_of_its_time(store: PlanStore, published: StoredPlan) -> None:
    """Not sooner; then it moves nothing, is approved by the policy, and has its time again."""
    soon, due = (published.created_at + timedelta(hours=hours) for hours in (2, 4))
    assert store.expiring(["orders", "another"], soon) == []
    assert renewed(store, due, following) is not None
    first, second = store.history("orders")
    assert (first["state"], second["state"], second["moved"]) == ("published", "approved", 0)
    assert store.get("orders", 2).expires_at == due + SIX_HOURS
    assert renewed(store, due, following) is None


def test_plan_that_no_longer_fits_is_not_renewed(store: PlanStore, published: StoredPlan) -> None:
    """It would be refused at publication; the next look plans for who is there."""
    assert renewed(store, published.created_at + SIX_HOURS, emptied) is None
    assert len(store.history("orders")) == 1
