"""Samples of groups as arrays, for the analysis.

`arrays` makes arrays of a group's samples, `lag` computes how far behind partitions are, and
`questions` makes the input of the analysis.
"""

from datetime import timedelta
from typing import Final

#: For so long every look is kept; of what lies before, a look each `KEPT_EVERY`.
EVERY_LOOK: Final = timedelta(hours=1)
KEPT_EVERY: Final = timedelta(minutes=15)
#: How far back the analysis looks.
HISTORY: Final = timedelta(days=1)


def looked_back(*, remembered: bool) -> timedelta:
    """Return how much history an analysis needs: less if the members' speeds are remembered."""
    return EVERY_LOOK if remembered else HISTORY
