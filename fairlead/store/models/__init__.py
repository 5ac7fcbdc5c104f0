"""The tables of the schema `fairlead_raw`, as `migrations/` creates them (a test compares the two).

Triggers, functions and views are SQL: `migrations/sql`.
"""

from fairlead.store.models import analysis, history, plan

__all__ = ["analysis", "history", "plan"]
