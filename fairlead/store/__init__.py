"""Postgres: all plans with their states, all decisions, and the history of lag and balance.

Tables are in the schema `fairlead_raw` (`models`), views and functions for people in `fairlead`;
Alembic migrates both (`migrate`). Constraints and triggers enforce the same rules for every writer:
only allowed transitions of state, immutable documents, append-only events. The planner uses
`PlanStore`.
"""
