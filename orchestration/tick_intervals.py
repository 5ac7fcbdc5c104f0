"""How often schedules and sensors tick; Dagster fixes this when the code location loads.

Belongs here: the settings for this. Does not: other settings, which each tick and run reads again.
"""

from fairlead.errors import ConfigurationError
from fairlead.settings import PlanningSettings, SamplingSettings, load_settings

#: Seconds. Dagster's daemon calls sensors every five seconds at most.
_LEAST_S, _MOST_S = 5, 30


def at_loading() -> tuple[PlanningSettings, SamplingSettings]:
    """Return the settings; if they are invalid, the defaults, since each tick reports the error."""
    try:
        settings = load_settings()
    except ConfigurationError:
        return PlanningSettings(), SamplingSettings()
    return settings.planning, settings.sampling


def ticks_of(sampling: SamplingSettings) -> int:
    """Return the seconds between two ticks: three ticks per sample.

    Examples
    --------
    >>> from datetime import timedelta
    >>> [ticks_of(SamplingSettings(every=timedelta(seconds=every))) for every in (15, 30, 300)]
    [5, 10, 30]
    """
    return int(max(_LEAST_S, min(_MOST_S, sampling.every.total_seconds() / 3)))
