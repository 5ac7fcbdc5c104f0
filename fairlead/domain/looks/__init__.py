"""Looks at groups: where their partitions stood, moment by moment.

`look` lays one out, a row a group; `arrays` and `stacks` hand a group's looks, or those of many at
once, to what computes; `lag` says how far behind partitions are; `questions` asks the judgement.
"""

from datetime import timedelta
from typing import Final

#: For so long every look is kept; of what lies before, a look each `KEPT_EVERY`.
EVERY_LOOK: Final = timedelta(hours=1)
KEPT_EVERY: Final = timedelta(minutes=15)
#: How far back the judgement looks.
HISTORY: Final = timedelta(days=1)
