"""The clocks that consumers use; tests replace them with clocks that they control."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime


def _utc() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True)
class Clock:
    """The clocks that a consumer uses.

    Parameters
    ----------
    monotonic
        Returns seconds of a monotonic clock, for durations.
    utc
        Returns the time, time-zone-aware, for leases.
    """

    monotonic: Callable[[], float] = time.monotonic
    utc: Callable[[], datetime] = _utc
