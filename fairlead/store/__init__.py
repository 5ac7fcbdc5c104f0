"""Postgres: every plan with its life, every decision, and the history of lag and balance.

Tables are in the schema `fairlead_raw` (`models`), views and functions for people in `fairlead`;
Alembic migrates both (`migrate`). Constraints and triggers enforce the rules for every writer:
transitions, immutable documents, append-only events. The planner uses `PlanStore`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from fairlead.domain.records import Decision, PlanDraft, StoredDecision, StoredPlan
    from fairlead.store.engine import create_store_engine
    from fairlead.store.plans import PlanStore

__all__ = [
    "Decision",
    "PlanDraft",
    "PlanStore",
    "StoredDecision",
    "StoredPlan",
    "create_store_engine",
]
#: Imported at first use: callers that only read need neither arrays nor models.
_HOMES: Final = {
    "PlanStore": "fairlead.store.plans",
    "create_store_engine": "fairlead.store.engine",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES.get(name, "fairlead.domain.records")), name)
