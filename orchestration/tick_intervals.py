"""How often schedules and sensors tick: Dagster wants to know when definitions are made.

Belongs here: what settings say of that, read once, when the code location loads. Does not: any
other setting, which ticks and runs read again.
"""

from fairlead.errors import ConfigurationError
from fairlead.settings import PlanningSettings, SamplingSettings, load_settings

#: Dagster's daemon asks sensors every five seconds at most.
_LEAST_S, _MOST_S = 5, 30


def _read() -> tuple[PlanningSettings, SamplingSettings]:
    """Return what the settings say, or the defaults: each tick says what is wrong with them."""
    try:
        settings = load_settings()
    except ConfigurationError:
        return PlanningSettings(), SamplingSettings()
    return settings.planning, settings.sampling


def planning_rhythm() -> str:
    """Return when cohorts are planned that are due, as cron writes it."""
    return _read()[0].schedule


def ask_every_s() -> int:
    """Return how often it is asked whether a sample is due, or a plan: three times a sample."""
    return asked_every_s(_read()[1])


def asked_every_s(sampling: SamplingSettings) -> int:
    """Return the same of some settings.

    Examples
    --------
    >>> from datetime import timedelta
    >>> [asked_every_s(SamplingSettings(every=timedelta(seconds=every))) for every in (15, 30, 300)]
    [5, 10, 30]
    """
    return int(max(_LEAST_S, min(_MOST_S, sampling.every.total_seconds() / 3)))
