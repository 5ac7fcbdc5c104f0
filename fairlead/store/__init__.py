"""Postgres: every plan with its life, every decision, and the history of lag and balance.

Tables are in the schema `fairlead_raw` (`models`), views and functions for people in `fairlead`;
Alembic migrates both (`migrate`). Constraints and triggers enforce the rules for every writer:
transitions, immutable documents, append-only events. The planner uses `PlanStore`.
"""
