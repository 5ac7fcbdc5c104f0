"""The time between samples: as configured, or longer if taking or analysing a sample is slow.

Belongs here: arithmetic on the cost of the newest sample. Belongs elsewhere: sampling (`sampling`).
"""

from datetime import datetime, timedelta
from typing import Final

from fairlead.archive import Taken
from fairlead.common.words import plural
from fairlead.settings import SamplingSettings

#: A sample may be early by this share of the interval. Dagster's sensor checks three times per
#: interval whether a sample is due. This share is half the time between two checks.
_EARLY: Final = 1 / 6
#: Maximum share of the time between samples for analysing a sample. The interval grows if needed.
_ANALYSING: Final = 0.5


def interval(taken: Taken, settings: SamplingSettings) -> timedelta:
    """Return the time from the beginning of one sample to the beginning of the next.

    This time is at least `sampling.every`. If samples are slow, it is longer, so that reading from
    brokers takes at most the share `sampling.share` of it, and the analysis at most half of it.

    Examples
    --------
    >>> from datetime import UTC
    >>> def cost(took_s): return Taken(datetime(2026, 1, 1, tzinfo=UTC), took_s, 1, 1)
    >>> [interval(cost(took_s), SamplingSettings()).total_seconds() for took_s in (0.5, 45.0)]
    [60.0, 300.0]
    >>> taken = Taken(datetime(2026, 1, 1, tzinfo=UTC), 30.0, 1, 1, 90.0)
    >>> interval(taken, SamplingSettings()).total_seconds()
    200.0
    """
    reading, analysing = taken.took_s / settings.share, taken.analysed_s / _ANALYSING
    return max(settings.every, timedelta(seconds=max(reading, analysing)))


def due(taken: Taken | None, settings: SamplingSettings, at: datetime) -> bool:
    """Whether a sample is due at this time."""
    return taken is None or wait_s(taken, settings, at) <= (
        _EARLY * interval(taken, settings).total_seconds()
    )


def wait_s(taken: Taken | None, settings: SamplingSettings, at: datetime) -> float:
    """Return the seconds until the next sample; 0 if the newest sample's time is in the future."""
    if taken is None:
        return 0.0
    apart = interval(taken, settings)
    left = (taken.began + apart - at).total_seconds()
    return left if 0 < left <= apart.total_seconds() else 0.0


def describe_cost(taken: Taken, settings: SamplingSettings) -> str:
    """Describe the cost of a sample, and when the next one is due.

    Examples
    --------
    >>> from datetime import UTC
    >>> taken = Taken(datetime(2026, 1, 1, tzinfo=UTC), 45.0, 10_000, 1_000_000)
    >>> describe_cost(taken, SamplingSettings())
    'Sampled 10,000 groups, 1,000,000 partitions, in 45.0 s; the next sample is due after 300 s,
    not 60 s: sampling may take 15 % of the time (sampling.share), and analysis 50 %'
    """
    apart = interval(taken, settings)
    analysed = f", analysed them in {taken.analysed_s:.1f} s" if taken.analysed_s else ""
    cost = (
        f"Sampled {plural(taken.groups, 'group')}, {plural(taken.partitions, 'partition')}, in "
        f"{taken.took_s:.1f} s{analysed}; the next sample is due after "
        f"{apart.total_seconds():.0f} s"
    )
    if apart == settings.every:
        return cost
    return (
        f"{cost}, not {settings.every.total_seconds():.0f} s: sampling may take "
        f"{100 * settings.share:.0f} % of the time (sampling.share), and analysis "
        f"{100 * _ANALYSING:.0f} %"
    )
