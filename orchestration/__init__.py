"""The Dagster code location: definitions, jobs, the schedule, sensors and running from a shell.

Nothing here does I/O at import. Modules here must not use `from __future__ import annotations`.
"""
