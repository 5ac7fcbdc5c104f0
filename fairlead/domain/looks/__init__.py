"""Samples of groups, moment by moment, as what computes takes them.

`arrays` lays a group's samples out; `lag` says how far behind partitions are; `questions` asks the
judgement.
"""

from datetime import timedelta
from typing import Final

#: For so long every look is kept; of what lies before, a look each `KEPT_EVERY`.
EVERY_LOOK: Final = timedelta(hours=1)
KEPT_EVERY: Final = timedelta(minutes=15)
#: How far back the judgement looks.
HISTORY: Final = timedelta(days=1)


def looked_back(*, remembered: bool) -> timedelta:
    """Return how far back a group is judged by: by little where its members' speeds are known."""
    return EVERY_LOOK if remembered else HISTORY
