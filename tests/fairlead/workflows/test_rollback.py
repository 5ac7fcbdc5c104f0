"""Rollback to an old assignment as a new version, or an error with all reasons."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from fairlead.domain.approval import ApprovalDecision
from fairlead.domain.as_problem import planned
from fairlead.domain.groups import LiveGroup
from fairlead.domain.policy import Approval, Policy
from fairlead.domain.records import StoredPlan
from fairlead.errors import PlanStateError, StalePlanError
from fairlead.store.plans import PlanStore
from fairlead.wire.document import MemberShare, PlanDocument
from fairlead.workflows.rollback import rollback
from tests.fairlead.workflows.plans import as_planned, emptied
from tests.fixtures.plans import SNAPSHOT_AT
from tests.stored import plan_history

pytestmark = pytest.mark.postgres

Step = Callable[..., StoredPlan]
NOW = SNAPSHOT_AT + timedelta(days=1)

#: Shares in version 2. In version 1, the default of `draft`, orders-1 has only partition 0.
SECOND = {
    "orders-1": MemberShare(("t0",), {"t0": np.array([0, 1], np.int32)}),
    "orders-2": MemberShare(("t0",), {"t0": np.array([2], np.int32)}),
}


def following_second(group: str) -> LiveGroup:
    """Describe the group while it follows version 2."""
    return as_planned(group, {"orders-1": [0, 1], "orders-2": [2]})


def shares_of(plan: PlanDocument) -> dict[str, dict[str, list[int]]]:
    return {
        name: {topic: list(numbers) for topic, numbers in share.items()}
        for name, share in planned(plan).items()
    }


def back_to(store: PlanStore, version: int, **changes: Any) -> tuple[StoredPlan, ApprovalDecision]:
    values: dict[str, Any] = {
        "policy": Policy(expires_after=timedelta(hours=1)),
        "live": following_second,
        "reason": "it was calmer",
        "now": NOW,
    }
    return rollback(store, "orders", version, **(values | changes))


@pytest.fixture
def second(store: PlanStore, publish: Step) -> PlanStore:
    """Return a store in which version 2 is published and version 1 superseded."""
    publish("s1")
    publish("s2", members=SECOND)
    return store


def lag(at: datetime, values: list[int]) -> pa.Table:
    """Return measured lag of t0, whose first partition has the status STOP."""
    count = len(values)
    return pa.table(
        {
            "snapshot_id": ["s3"] * count,
            "snapshot_at": pa.array([at] * count, pa.timestamp("us", "UTC")),
            "group": ["orders"] * count,
            "topic": ["t0"] * count,
            "partition": pa.array(range(count), pa.int32()),
            "begin_offset": [0] * count,
            "end_offset": values,
            "committed_offset": [0] * count,
            "lag": values,
            "arrival_rate": pa.nulls(count, pa.float64()),
            "consumption_rate": pa.nulls(count, pa.float64()),
            "time_lag_s": pa.nulls(count, pa.float64()),
            "status": ["STOP"] + ["OK"] * (count - 1),
        }
    )


def test_old_assignment_becomes_the_next_version(second: PlanStore) -> None:
    """A rollback creates a new version with the old version's shares, which waits for approval.

    `rolled_back_from` is the old version's number.
    """
    plan, approval = back_to(second, 1, actor="kim")
    assert (plan.version, plan.state) == (3, "proposed")
    assert (plan.rolled_back_from, plan.four_eyes) == (1, None)
    assert plan.reason == "rollback to version 1: it was calmer (requested by kim)"
    old, new = (second.get("orders", version).verify() for version in (1, 3))
    assert shares_of(new) == shares_of(old)
    assert plan.expires_at == NOW + timedelta(hours=1)
    assert approval.reason == "waits for a person: the policy approves nothing automatically"


def test_moves_and_loads_are_relative_to_the_current_assignment(second: PlanStore) -> None:
    """Moves are counted from the present owners; loads are computed from the newest lag."""
    second.record_lag(lag(NOW, [10, 500, 20]))
    back_to(second, 1)
    third = plan_history(second, "orders")[-1]
    assert (third["moved"], third["lag_max_before"], third["lag_max_predicted"]) == (1, 510, 520)
    assert second.get("orders", 3).verify().weights["t0"].tolist() == [10, 500, 20]


def test_policy_approves_rollbacks_by_its_rules(second: PlanStore) -> None:
    """An automatic policy approves the rollback unless a partition has stopped."""
    automatic = Policy(approval=Approval(automatic=True))
    assert back_to(second, 1, policy=automatic)[0].state == "approved"
    second.record_lag(lag(NOW, [10, 500, 20]))
    waiting, approval = back_to(second, 1, policy=automatic, now=NOW + timedelta(seconds=1))
    assert (waiting.version, waiting.state) == (4, "proposed")
    assert "partitions are in STOP" in approval.reason
    assert second.get("orders", 3).state == "stale"


def test_version_that_no_longer_fits_is_refused_with_every_reason(second: PlanStore) -> None:
    """If an old version no longer fits, an error names former members and changed topics."""
    with pytest.raises(StalePlanError) as caught:
        back_to(second, 1, live=emptied)
    assert str(caught.value) == (
        "group orders: version 1 no longer fits the group: members that left: orders-1, orders-2; "
        "topic t0 has 0 partitions instead of 3"
    )
    assert len(plan_history(second, "orders")) == 2


@pytest.mark.parametrize(
    ("version", "why"), [(2, "version 2 is already published"), (9, "has no version 9")]
)
def test_rollback_needs_an_older_version(second: PlanStore, version: int, why: str) -> None:
    """A rollback to the published version or to an unknown version is refused."""
    with pytest.raises(PlanStateError, match=why):
        back_to(second, version)


def test_rollback_to_an_unpublished_version_is_refused(second: PlanStore, propose: Step) -> None:
    """A rollback is sent even during a freeze, so its target must once have been published."""
    propose("s3")
    for state in ("proposed", "rejected"):
        with pytest.raises(PlanStateError, match=f"version 3 is {state}: no consumer followed it"):
            back_to(second, 3)
        if state == "proposed":
            second.reject("orders", 3, reason="it would make it worse")
