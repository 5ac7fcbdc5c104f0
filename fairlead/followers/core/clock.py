"""What time it is, handed in: so that the same code runs against a clock that a test moves.

Belongs here: the two clocks that followers read. Does not: waiting, which whoever has a log or a
connection to wait for does.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime


def _utc() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True)
class Clock:
    """The clocks of a machine.

    Parameters
    ----------
    monotonic
        Seconds from some beginning, for what takes how long.
    utc
        Time-zone-aware, for what lasts until when.
    """

    monotonic: Callable[[], float] = time.monotonic
    utc: Callable[[], datetime] = _utc
