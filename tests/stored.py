"""Write and read one group's rows of Fairlead's database, such as a decision.

The store's own functions take many groups. Belongs here: short functions with which tests write and
read the store. Belongs elsewhere: assertions.
"""

from typing import Any
from uuid import UUID, uuid4

import psycopg
from sqlalchemy import text

from fairlead.domain.records import Decision, PlanDraft, SeenAdoption, StoredDecision, StoredPlan
from fairlead.store.acts import Act, Verb
from fairlead.store.engine import transaction
from fairlead.store.plans import PlanStore
from fairlead.wire.document import PlanDocument, content_hash


def stored_plan(plan: PlanDocument) -> StoredPlan:
    """Return a plan as a row of the store: published, but without its record's position."""
    value = plan.to_bytes()
    return StoredPlan(
        group=plan.group,
        version=plan.version,
        plan_id=UUID(plan.plan_id),
        state="published",
        assignor=plan.assignor,
        reason="lighter",
        snapshot_id="s1",
        snapshot_at=plan.snapshot_at,
        created_at=plan.created_at,
        expires_at=None,
        document=value,
        sha256=content_hash(value),
        approved_sha256=content_hash(value),
        topic=None,
        partition=None,
        record_offset=None,
        four_eyes=None,
        rolled_back_from=None,
    )


def record_decision(store: PlanStore, decision: Decision) -> StoredDecision:
    """Store a decision on a group."""
    (stored,) = store.record_decisions([decision])
    return stored


def record_plan(store: PlanStore, draft: PlanDraft) -> StoredPlan:
    """Store a decision with a plan, and return the plan."""
    plan = record_decision(store, draft).plan
    assert plan is not None
    return plan


def wanted(verb: Verb, plan: StoredPlan | None, who: str = "kim@example.com", **given: Any) -> Act:
    """Return the action `verb` on a plan, as a person would request it on a page."""
    about: dict[str, Any] = {"group": plan and plan.group, "version": plan and plan.version}
    about |= {"sha256": plan and plan.sha256, "id": uuid4(), "reason": "agreed"}
    return Act(actor=who, act=verb, **{"proof": "token 1", **about, **given})


def record_adoption(store: PlanStore, group: str, version: int, **seen: Any) -> None:
    """Store how far consumers follow a published plan; `seen` has fields of `SeenAdoption`."""
    store.record_adoptions([SeenAdoption(group=group, version=version, **seen)])


def plan_history(store: PlanStore, group: str) -> list[dict[str, Any]]:
    """Return a group's rows of the view `plan_history`, sorted by version."""
    query = text("SELECT * FROM fairlead.plan_history WHERE group_id = :group ORDER BY version")
    with transaction(store.engine) as connection:
        return [dict(row) for row in connection.execute(query, {"group": group}).mappings()]


def a_session_waits(url: str) -> bool:
    """Return whether any session of a database is waiting for a lock."""
    with psycopg.connect(url) as connection:
        waiting = connection.execute(
            "SELECT FROM pg_stat_activity"
            " WHERE datname = current_database() AND wait_event_type = 'Lock'"
        )
        return waiting.fetchone() is not None
