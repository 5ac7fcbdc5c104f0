"""Which samples are thinned out, and how much history an analysis uses."""

from datetime import timedelta
from typing import Final

#: Samples up to this age are all kept.
EVERY_SAMPLE: Final = timedelta(hours=1)
#: Of the samples that are older than `EVERY_SAMPLE`, one in each interval of this length is kept.
THINNED_TO: Final = timedelta(minutes=15)
#: An analysis uses no sample that is older than this.
HISTORY: Final = timedelta(days=1)


def history_needed(*, remembered: bool) -> timedelta:
    """Return the maximum age of samples in an analysis; lower if members' speeds are remembered."""
    return EVERY_SAMPLE if remembered else HISTORY
