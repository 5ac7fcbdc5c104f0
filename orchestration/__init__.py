"""The Dagster code location: definitions, jobs, the schedule, sensors, and runs from a shell.

Importing these modules opens no connection and writes nothing; it only reads the settings
(`tick_intervals`). Modules here must not use `from __future__ import annotations`, since Dagster
reads annotations as types.
"""

from fairlead.common.threads import one_thread

one_thread()  # before any module of this package imports numpy
