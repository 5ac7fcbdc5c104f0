"""A process that is asked for later: its pid and when it started, since pids are used again.

Belongs here: finding that very process. Does not: what it is, or ending it.
"""

from typing import Final

import psutil

# A process's start time is counted from the boot time, which clock adjustments shift.
_CLOCK_TOLERANCE_S: Final = 5.0


def same_process(pid: int, started_at: float) -> psutil.Process | None:
    """Return the process of a pid that started at a time; None: it runs no more.

    Parameters
    ----------
    pid
        As the process was known.
    started_at
        Seconds since 1970, as `psutil.Process.create_time` told.

    Examples
    --------
    >>> this = psutil.Process()
    >>> same_process(this.pid, this.create_time()) == this
    True
    >>> same_process(this.pid, this.create_time() - 60.0) is None
    True
    """
    try:
        process = psutil.Process(pid)
        same = abs(process.create_time() - started_at) < _CLOCK_TOLERANCE_S
        return process if same and process.status() != psutil.STATUS_ZOMBIE else None
    except psutil.Error:
        return None
