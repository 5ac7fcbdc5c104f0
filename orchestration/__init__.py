"""The Dagster code location: definitions, jobs, the schedule, sensors and running from a shell.

Nothing here connects or writes at import; `rhythm` reads the settings. Modules here must not use
`from __future__ import annotations`.
"""
