"""Postgres: every plan with its life, every decision, and the history of lag and balance.

Tables live in the schema `fairlead_raw` (`models`), the views and functions that people ask in
`fairlead`; Alembic migrates both (`migrate`). The rules that must hold whoever writes (transitions,
immutable documents, append-only events) are enforced there, by constraints and triggers;
`PlanStore` is the planner's way in.
"""

from fairlead.domain.records import NoPlan, PlanDraft, StoredDecision, StoredPlan
from fairlead.store.engine import create_store_engine
from fairlead.store.plans import PlanStore

__all__ = [
    "NoPlan",
    "PlanDraft",
    "PlanStore",
    "StoredDecision",
    "StoredPlan",
    "create_store_engine",
]
