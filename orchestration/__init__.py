"""The Dagster code location: definitions, jobs, the schedule, sensors, and runs from a shell.

Importing these modules opens no connection and writes nothing; `tick_intervals` reads the settings.
Modules here must not use `from __future__ import annotations`, since Dagster reads annotations.
"""

from fairlead.common.threads import one_thread

one_thread()  # before any module of this package imports numpy
