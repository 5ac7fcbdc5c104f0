"""Intervals of schedules and sensors, which are fixed when Dagster loads the code location.

Belongs here: settings that define intervals. Belongs elsewhere: other settings, which each tick and
each run reads again.
"""

from fairlead.errors import ConfigurationError
from fairlead.settings import PlanningSettings, SamplingSettings, load_settings

#: Shortest and longest time between two calls of a sensor, seconds. Dagster allows at least five.
_LEAST_S, _MOST_S = 5, 30


def at_loading() -> tuple[PlanningSettings, SamplingSettings]:
    """Return the settings or, if they are invalid, the defaults.

    Invalid settings must not prevent loading. Each tick reads them again and reports the error.
    """
    try:
        settings = load_settings()
    except ConfigurationError:
        return PlanningSettings(), SamplingSettings()
    return settings.planning, settings.sampling


def ticks_of(sampling: SamplingSettings) -> int:
    """Return the seconds between two ticks of the sensor that takes samples.

    A third of the sampling interval, but at least `_LEAST_S` and at most `_MOST_S`.

    Examples
    --------
    >>> from datetime import timedelta
    >>> [ticks_of(SamplingSettings(every=timedelta(seconds=every))) for every in (15, 30, 300)]
    [5, 10, 30]
    """
    return int(max(_LEAST_S, min(_MOST_S, sampling.every.total_seconds() / 3)))
