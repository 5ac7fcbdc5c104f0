"""The tables of the schema `fairlead_raw`; `migrations/` creates them.

Triggers, functions and views are SQL: `migrations/sql`.
"""

from fairlead.store.models import analysis, history, plan

__all__ = ["analysis", "history", "plan"]
