"""A migrated database, a store on it, and drafts to store.

Belongs here: fixtures of the store's tests.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from sqlalchemy import Engine

from fairlead.domain.candidate_figures import SnapshotCandidate
from fairlead.store import NoPlan, PlanDraft, PlanStore, StoredPlan, create_store_engine
from fairlead.store.outbox import Outbox, PublishRequest
from fairlead.store.published_records import PublishedRecord
from fairlead.wire.document import MemberShare
from tests.logins import Login, logins
from tests.stored import record_decision

SNAPSHOT_AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
LEASE_UNTIL = SNAPSHOT_AT + timedelta(hours=6)

MakeDraft = Callable[..., PlanDraft]
#: Opens a store on the database at a URL.
StoreAs = Callable[[str], PlanStore]


def sent(offset: int = 1, *, lease_until: datetime | None = LEASE_UNTIL) -> PublishedRecord:
    """Return the record of a sent plan at an offset of the plan topic."""
    return PublishedRecord(1, lease_until, "fairlead.plans", 0, offset)


def record_publication(store: PlanStore, plan: StoredPlan) -> None:
    """Publish an approved plan in the database, without Kafka."""
    outbox, wanted = (
        Outbox(store.engine),
        PublishRequest(plan.group, plan.version, lease_until=LEASE_UNTIL),
    )
    with outbox.turn("fairlead.plans", 0) as turn:
        (intent,) = turn.intend([wanted])
    outbox.confirm({plan.group: (intent, sent(plan.version))})


def record_withdrawal(store: PlanStore, group: str, *, reason: str = "enough") -> None:
    """Withdraw a group's published plan in the database, without Kafka."""
    plan, outbox = store.published(group), Outbox(store.engine)
    assert plan is not None
    with outbox.turn("fairlead.plans", 0) as turn:
        (intent,) = turn.intend([PublishRequest(group, plan.version, "withdrawn", reason=reason)])
    outbox.confirm({group: (intent, sent(lease_until=None))})


@pytest.fixture
def store_url(migrated: str) -> str:
    """Return the URL of a migrated database."""
    return migrated


@pytest.fixture
def engine(store_url: str) -> Iterator[Engine]:
    """Return an engine on a migrated database."""
    engine = create_store_engine(store_url)
    yield engine
    engine.dispose()


@pytest.fixture
def store(engine: Engine) -> PlanStore:
    """Return a store on a migrated database."""
    return PlanStore(engine)


@pytest.fixture
def metrics() -> Callable[..., dict[str, Any]]:
    """Return a function that makes an assignment's metrics from defaults and given values."""
    return make_metrics


def make_metrics(**given: Any) -> dict[str, Any]:
    return {
        "count_min": 1,
        "count_max": 2,
        "balance_score": 1,
        "lag_max": 160_000,
        "lag_mean": 105_000.0,
        "lag_lower_bound": 105_000,
        "gap": 0.52,
        "kept": 3,
        "moved": 0,
        "placed": 0,
        "topic_spread": 1.5,
        "forecast_time_lag_s": 300.0,
        "utilisation": 1.25,
        "catch_up_s": 900.0,
        "rack_gb_per_day": None,
        "rack_cost_per_day": None,
    } | given


@pytest.fixture
def draft() -> MakeDraft:
    """Return a function that makes a plan draft: `draft(snapshot_id, **changes)`."""
    return make_draft


def make_draft(
    snapshot_id: str = "s1",
    *,
    group: str = "orders",
    kind: type[PlanDraft] = PlanDraft,
    **changes: Any,
) -> PlanDraft:
    predicted = make_metrics(lag_max=110_000, gap=0.05, kept=2, moved=1)
    values: dict[str, Any] = {
        "group": group,
        "snapshot_id": snapshot_id,
        "snapshot_at": SNAPSHOT_AT,
        "reason": "the most loaded member gets lighter",
        "observed": make_metrics(),
        "candidates": (
            SnapshotCandidate(
                "sticky", predicted, outcome="balanced", frontier=((0, 160.0), (1, 110.0))
            ),
            SnapshotCandidate("range", error="it fell over"),
        ),
        "assignor": "sticky",
        "predicted": predicted,
        "moves": pa.table(
            {
                "topic": ["t0"],
                "partition": pa.array([1], pa.int32()),
                "previous_member": ["orders-1"],
                "member": ["orders-2"],
                "weight": [60_000.0],
                "reason": ["orders-1 is the heaviest"],
            }
        ),
        "expires_at": SNAPSHOT_AT + timedelta(days=36_500),
        "partition_counts": {"t0": 3},
        "members": {
            "orders-1": MemberShare(("t0",), {"t0": np.array([0], np.int32)}),
            "orders-2": MemberShare(("t0",), {"t0": np.array([1, 2], np.int32)}),
        },
        "weights": {"t0": np.array([100_000.0, 60_000.0, 50_000.0])},
    }
    return kind(**(values | changes))


@pytest.fixture
def no_plan() -> NoPlan:
    """Return a decision to change nothing."""
    return NoPlan(
        group="orders",
        snapshot_id="s1",
        snapshot_at=SNAPSHOT_AT,
        reason="within the band",
        observed=make_metrics(),
    )


@pytest.fixture
def propose(store: PlanStore, draft: MakeDraft) -> Callable[..., StoredPlan]:
    """Return a function that stores a draft and returns its plan."""

    def propose(snapshot_id: str = "s1", **changes: Any) -> StoredPlan:
        plan = record_decision(store, draft(snapshot_id, **changes)).plan
        assert plan is not None
        return plan

    return propose


@pytest.fixture
def approve(store: PlanStore, propose: Callable[..., StoredPlan]) -> Callable[..., StoredPlan]:
    """Return a function that stores a draft and approves it."""

    def approve(snapshot_id: str = "s1", **changes: Any) -> StoredPlan:
        plan = propose(snapshot_id, **changes)
        return store.approve(
            plan.group, plan.version, sha256=plan.sha256, reason="looks fine", actor="kim"
        )

    return approve


@pytest.fixture
def publish(store: PlanStore, approve: Callable[..., StoredPlan]) -> Callable[..., StoredPlan]:
    """Return a function that stores a draft, approves it and records its publication."""

    def publish(snapshot_id: str = "s1", **changes: Any) -> StoredPlan:
        plan = approve(snapshot_id, **changes)
        record_publication(store, plan)
        return store.get(plan.group, plan.version)

    return publish


@pytest.fixture
def login(store_url: str) -> Iterator[Login]:
    """Return a function that makes a login with roles, and returns its URL of the database."""
    with logins(store_url) as make:
        yield make


@pytest.fixture
def store_as() -> Iterator[StoreAs]:
    """Return a function that opens a store on the database at a URL."""
    with ExitStack() as stack:

        def open_store(url: str) -> PlanStore:
            engine = create_store_engine(url)
            stack.callback(engine.dispose)
            return PlanStore(engine)

        yield open_store
