"""How long samples are kept, and how much history an analysis uses."""

from datetime import timedelta
from typing import Final

#: All samples of this age or less are kept.
EVERY_SAMPLE: Final = timedelta(hours=1)
#: Samples older than `EVERY_SAMPLE` are thinned out to one per interval of this length.
THINNED_TO: Final = timedelta(minutes=15)
#: Age of the oldest sample that is analysed.
HISTORY: Final = timedelta(days=1)


def history_needed(*, remembered: bool) -> timedelta:
    """Return how much history an analysis needs: less if the members' speeds are remembered."""
    return EVERY_SAMPLE if remembered else HISTORY
